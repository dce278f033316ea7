"""Values of value types as operands and results of callbacks: Python gets and returns them whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax, random
from corejax.extend.types import Packed
from tests.value_types import Stacked, Symmetric, dense, matrix, symmetric

S = symmetric(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
WRAPPERS = pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit], ids=["plain", "jit"])


def doubled(s: Any) -> Any:
    assert type(s) is Packed
    return lax.pack(s.aval, *(2 * np.asarray(part) for part in s.parts))


def equal(got: Any, want: Any) -> None:
    assert got.aval is want.aval
    for one, other in zip(got.parts, want.parts, strict=True):
        np.testing.assert_array_equal(one, other)


@WRAPPERS
def test_operands_and_results(wrap: Callable[..., Any]) -> None:
    seen = []

    def f(s: Any, x: Any) -> Any:
        corejax.debug.callback(seen.append, s)
        twice = corejax.pure_callback(doubled, s.aval, s)
        got = corejax.io_callback(lambda d: {"s": doubled(d["s"]), "x": d["x"]}, {"s": s, "x": x}, {"s": twice, "x": x})
        ordered = corejax.io_callback(doubled, s.aval, s, ordered=True)
        return got["s"], got["x"], ordered

    four, x, two = wrap(f)(S, jnp.arange(3.0))
    equal(four, lax.pack(S.aval, 4 * S.parts[0]))
    equal(two, lax.pack(S.aval, 2 * S.parts[0]))
    np.testing.assert_array_equal(x, np.arange(3))
    corejax.effects_barrier()
    equal(seen[0], S)


@WRAPPERS
@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_batches(wrap: Callable[..., Any], method: str) -> None:
    x = matrix(3, 4, 2)
    value = corejax.vmap(lambda x: lax.pack(Stacked(x.shape, x.dtype), x, jnp.stack([x, 3 * x])))(x)
    f = lambda s: corejax.pure_callback(doubled, s.aval, s, vmap_method=method)
    equal(wrap(corejax.vmap(f))(value), lax.pack(value.aval, *(2 * part for part in value.parts)))


@WRAPPERS
def test_keys_as_results(wrap: Callable[..., Any]) -> None:
    keys = random.split(random.key(0), 3)
    got = wrap(lambda keys: corejax.pure_callback(lambda keys: keys[::-1], keys, keys))(keys)
    np.testing.assert_array_equal(random.key_data(got), random.key_data(keys)[::-1])


@WRAPPERS
def test_results_of_other_types_are_refused(wrap: Callable[..., Any]) -> None:
    other = Symmetric((3, 3), "float32")
    for result, wanted, message in (
        (lambda s: np.zeros((2, 2), np.float32), S.aval, r"returned float32\[2,2\] as result.*has Symmetric\[float32"),
        (
            lambda s: s,
            corejax.ShapeDtypeStruct((2, 2), "float32"),
            r"a value of type Symmetric\[f32\[2,2\]\] as",
        ),
        (lambda s: s, other, r"a value of type Symmetric\[f32\[2,2\]\] as result, .* has Symmetric\[float32\[3,3\]\]"),
    ):
        with pytest.raises(TypeError, match=message):
            wrap(lambda s, result=result, wanted=wanted: corejax.pure_callback(result, wanted, s))(S)


def test_in_a_loop_of_values() -> None:
    def step(s: Any, _: Any) -> Any:
        return corejax.pure_callback(doubled, s.aval, s), jnp.trace(dense(s))

    last, traces = corejax.jit(lambda s: lax.scan(step, s, None, length=3))(S)
    equal(last, lax.pack(S.aval, 8 * S.parts[0]))
    np.testing.assert_array_equal(traces, [5, 10, 20])
