"""What `test_alone` runs in a process without jax: NumPy values and Python scalars as arguments of jitted functions."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import jit, lax, tree_util, vmap
from corejax_xla_backend._jit import jit as jit_page
from corejax_xla_backend._xla.dispatch import dispatch_registry

DTYPES = (
    "bool",
    "int8",
    "int32",
    "int64",
    "uint8",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
VALUES = (
    [np.ones((2, 3), dtype) for dtype in DTYPES]
    + [np.dtype(dtype).type(1) for dtype in DTYPES]
    + [np.ones(2, dtype) for dtype in (ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e4m3fn)]
    + [True, 3, -0.0, 2.5, 1 + 2j, float("nan"), float("inf")]
    + [np.arange(12.0).reshape(4, 3)[::2], np.arange(6.0).reshape(2, 3).T, np.ones((0, 3)), np.float32(2).reshape(())]
)


def seen_of(f: Any, x: Any) -> list[Any]:
    """Types and bits of a result, leaf by leaf."""
    leaves = tree_util.tree_leaves(f(x))
    return [(leaf.shape, leaf.dtype, leaf.weak_type, np.asarray(leaf).tobytes()) for leaf in leaves]


def test_every_call_gives_what_the_first_one_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "jax" not in sys.modules and not dispatch_registry.makes_buffers
    runs: list[Any] = []
    monkeypatch.setattr(jit_page, "run", lambda *args, run=jit_page.run: runs.append(args) or run(*args))
    double = jit(lambda x: (x, {"twice": lax.add(x, x) if x.dtype != np.bool_ else x}))
    for x in VALUES:
        right = (np.asarray(corejax.lax.asarray(x)).tobytes(), corejax.lax.asarray(x).dtype)
        first = seen_of(double, x)
        assert (first[0][3], first[0][1]) == right
        for _ in range(3):
            assert seen_of(double, x) == first
    for x in VALUES:  # each new signature has the dispatcher ask once more for the earlier ones
        double(x)
    runs.clear()
    for x in VALUES:
        double(x)
    assert not runs, "the dispatcher takes such values"


def test_what_the_caller_writes_later_changes_nothing() -> None:
    """The memory is the caller's: at no alignment and no size is it read after the call."""
    f = jit(lambda x, y: (x, x + y, x.reshape(-1)))
    memory = np.zeros(100_001 * 8 + 64, np.uint8)
    memory = memory[-memory.ctypes.data % 64 :]
    for offset, size in ((0, 8), (8, 8), (8, 8_000), (0, 8_192), (8, 8_200), (8, 12_000), (0, 100_000), (8, 100_000)):
        x = memory[offset : offset + 8 * size].view(np.float64)
        for i in range(20):
            x[:] = i
            results = f(x, 1.0)
            x[:] = -1
            for result, right in zip(results, (i, i + 1, i), strict=True):
                np.testing.assert_array_equal(result, np.full(size, right))


def test_errors() -> None:
    f = jit(lambda x: x)
    for _ in range(3):
        f(1), f(np.float32([1, 2]))
        for wrong, error, message in (
            (2**40, OverflowError, "does not fit int32"),
            (np.array(["a"]), TypeError, "argument x: arrays of dtype <U1 are not supported"),
            (np.array([None]), TypeError, "argument x: arrays of dtype object are not supported"),
            (np.ones(2, ">f4"), TypeError, "argument x: arrays of dtype >f4"),
            ("text", TypeError, "argument x"),
        ):
            with pytest.raises(error, match=message):
                f(wrong)


def test_widths_follow_the_settings() -> None:
    f = jit(lambda x: x * 2)
    assert [f(1.0).dtype, f(1).dtype] == ["float32", "int32"]
    with corejax.enable_x64():
        assert [f(1.0).dtype, f(1).dtype, f(2**40).dtype] == ["float64", "int64", "int64"]
    assert [f(1.0).dtype, f(1).dtype] == ["float32", "int32"]
    np.testing.assert_array_equal(vmap(f)(np.ones(3)), [2, 2, 2])


def test_numbers_that_come_again() -> None:
    """What was made of a number is used again only for the same number, and programs take nothing of it."""
    f = jit(lambda x: (x, 1 / x))
    values = (0.0, -0.0, 1.0, 1, True, -1.0, float("nan"), 0j, complex(0.0, -0.0), complex(-0.0, 0.0), False, 0)
    first = [seen_of(f, x) for x in values]
    for _ in range(3):
        assert [seen_of(f, x) for x in values] == first
    assert [np.signbit(f(x)[1]) for x in (0.0, -0.0, 0.0)] == [False, True, False]
    donating = jit(lambda x, y: (x * 2, y + x), donate_argnums=(0, 1))
    assert [tuple(map(float, donating(3.0, 3.0))) for _ in range(5)] == [(6.0, 6.0)] * 5
    given = jit(lambda x: x)(2.5)
    given.delete()
    assert float(jit(lambda x: x)(2.5)) == 2.5
    count = jit(lambda i, x: i + x)
    assert [int(count(i, 1)) for i in [*range(3000), *range(3000)]] == [i + 1 for i in [*range(3000), *range(3000)]]


def test_jax_comes_later() -> None:
    """jax has the dispatcher make NumPy values 32 bits wide; ours stay as they are."""
    f = jit(lambda x: x + 1)
    values = (np.ones(3), np.float64(2), np.arange(3), 2.0, 3, np.float32(1))
    before = [f(x).dtype for x in values for _ in range(3)]
    jax = pytest.importorskip("jax")
    assert dispatch_registry.makes_buffers
    assert [f(x).dtype for x in values for _ in range(3)] == before
    assert jax.jit(lambda x: x + 1)(np.ones(3)).dtype == "float32"
    assert [f(x).dtype for x in values for _ in range(3)] == before
