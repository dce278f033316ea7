"""Eager functions of `corejax.numpy` that come often: compiled in the background, with results that stay the same."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend import config, remembered
from corejax.interpreters import frequent_programs
from corejax.interpreters import remembered as remembering

X = jnp.asarray(np.linspace(-3, 3, 60, dtype=np.float32))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs are compiled soon, whatever they take."""
    monkeypatch.setattr(frequent_programs, "CHEAP", 0.0)
    monkeypatch.setattr(frequent_programs, "SPENT_EACH", 0.0)
    monkeypatch.setattr(frequent_programs, "SPENT", 0.0)
    corejax.jit(lambda x: x)(X)  # jaxlib is there
    with config.override(compile_frequent=True):
        yield


def compiled(f: Any, *args: Any) -> Any:
    """A result of the compiled program."""
    corejax.clear_caches()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        f(*args)
        for table in remembering._known_tables():
            for program in table.values():
                cost = getattr(program, "cost", None)
                if cost is not None and cost.compiled is not None:
                    cost._least = 1.0  # it stays, also where it is slower
                    return f(*args)
        time.sleep(0.005)
    raise AssertionError("nothing was compiled")


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("unwrap", (X * 3,)),
        ("nan_to_num", (X.astype(np.float16),)),
        ("nanvar", (X.astype(jnp.bfloat16),)),
        ("gradient", (X,)),
        ("cross", (X.reshape(20, 3), X.reshape(20, 3)[::-1])),
        ("divmod", (X, 0.7)),
        ("logaddexp2", (X.astype(np.float64), X[:1].astype(np.float64))),
        ("append", (X[:0], X[:0])),
    ],
)
def test_types_are_those_of_the_function_and_values_equal_up_to_rounding(name: str, args: Any) -> None:
    f = getattr(jnp, name)
    wanted = f.__wrapped__(*args)
    got = compiled(f, *args)
    assert corejax.tree.structure(got) == corejax.tree.structure(wanted)
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(wanted), strict=True):
        assert a.aval is b.aval
        np.testing.assert_allclose(
            np.asarray(a, np.float64),
            np.asarray(b, np.float64),
            rtol=1e-2 if a.dtype == jnp.bfloat16 else 2e-6,
            atol=1e-6,
        )


def test_weak_types_and_arrays_on_devices() -> None:
    weak = jnp.asarray(2.5)
    assert weak.aval.weak_type
    assert compiled(jnp.nan_to_num, weak).aval.weak_type == jnp.nan_to_num.__wrapped__(weak).aval.weak_type
    on_device = corejax.device_put(X, corejax.devices()[0])
    np.testing.assert_allclose(compiled(jnp.sinc, on_device), np.sinc(np.asarray(X)), rtol=1e-5, atol=1e-6)


def test_transformations_errors_and_deleted_arrays_are_as_before() -> None:
    x = X + 0
    compiled(jnp.sinc, x)
    assert "sin" in str(corejax.make_jaxpr(jnp.sinc)(x))
    assert corejax.vmap(corejax.grad(jnp.sinc))(x).shape == x.shape
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        jnp.sinc(x)


def test_nans_are_found_once_the_setting_asks_for_it() -> None:
    def log_of_sum(x: Any) -> Any:
        return jnp.log(x + 1)

    f = remembered(log_of_sum)
    bad = jnp.asarray(np.float32([-3, 1]))
    assert np.isnan(np.asarray(compiled(f, bad))[0])
    with config.override(debug_nans=True), pytest.raises(FloatingPointError, match="log"):
        f(bad)


def test_inside_of_a_callback_of_a_compiled_program() -> None:
    compiled(jnp.sinc, X)

    def host(x: Any) -> Any:
        return np.asarray(jnp.sinc(jnp.asarray(x)))

    out = corejax.jit(lambda x: corejax.pure_callback(host, corejax.ShapeDtypeStruct(x.shape, x.dtype), x))(X)
    np.testing.assert_allclose(out, np.sinc(np.asarray(X)), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_goes_back_to_the_host() -> None:
    wanted = np.asarray(compiled(jnp.sinc, X))
    child = os.fork()
    if not child:  # pragma: no cover
        ok = np.allclose(np.asarray(jnp.sinc(X)), wanted, rtol=1e-5, atol=1e-6)
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
