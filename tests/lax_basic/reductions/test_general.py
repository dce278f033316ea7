"""reduce with any function, and reduce_xor: against jax and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax

jax = pytest.importorskip("jax")

X = np.random.default_rng(0).uniform(-1, 1, (3, 5, 2)).astype("f")
INTS = np.arange(30, dtype="i").reshape(3, 5, 2) * 7 % 13


def product(library: Any) -> Callable[[Any, Any], Any]:
    return lambda a, b: library.lax.mul(a, b)


def affine(library: Any) -> Callable[[Any, Any], Any]:
    """Composition of affine maps: associative, not commutative."""
    return lambda f, g: (g[0] * f[0], g[0] * f[1] + g[1])


def everything(library: Any) -> dict[str, Any]:
    L = library.lax
    one, zero = np.float32(1), np.float32(0)
    return {
        "product": L.reduce(X, one, product(library), (1,)),
        "all axes": L.reduce(X, one, product(library), (0, 1, 2)),
        "no axis": L.reduce(X, one, product(library), ()),
        "negative zero": L.reduce(X[:0], one, product(library), (0,)),
        "affine": L.reduce((X, X[::-1]), (one, zero), affine(library), (1,)),
        "gradient": library.grad(lambda x: (L.reduce(x, one, product(library), (1,)) ** 2).sum())(X),
        "batch": library.vmap(lambda x: L.reduce(x, one, product(library), (0,)), 2, 1)(X),
    }


def test_values_gradients_and_batches_are_those_of_jax() -> None:
    wanted = jax.jit(lambda: everything(jax))()
    for outs in (everything(corejax), corejax.jit(lambda: everything(corejax))()):
        for name, right in wanted.items():
            for got, r in zip(corejax.tree.leaves(outs[name]), jax.tree.leaves(right), strict=True):
                np.testing.assert_allclose(got, r, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("computation", "x", "initial", "primitive"),
    [
        (lax.add, X, 0.0, "reduce_sum"),
        (lax.mul, X, 1, "reduce_prod"),
        (lax.max, X, -np.inf, "reduce_max"),
        (lax.min, INTS, np.int32(2**31 - 1), "reduce_min"),
        (lax.bitwise_and, INTS, -1, "reduce_and"),
        (lax.bitwise_or, INTS, 0, "reduce_or"),
        (lax.bitwise_xor, INTS, 0, "reduce_xor"),
        (lax.bitwise_xor, INTS > 3, False, "reduce_xor"),
        (lax.add, X, 1.0, "reduce"),
        (lax.max, INTS, 0, "reduce"),
        (lambda a, b: a + b, X, 0.0, "reduce"),
    ],
)
def test_what_is_a_primitive_becomes_it(computation: Any, x: Any, initial: Any, primitive: str) -> None:
    program = corejax.make_jaxpr(lambda x: lax.reduce(x, initial, computation, (0,)))(x)
    assert [eqn.primitive.name for eqn in program.eqns] == [primitive]


def test_weak_types_are_those_of_operand_and_initial_value() -> None:
    weak = jnp.asarray(2.0)
    assert lax.reduce(weak, 0.0, lax.add, ()).weak_type
    assert not lax.reduce(weak, np.float32(0), lax.add, ()).weak_type


def test_exclusive_or_of_every_dtype() -> None:
    for dtype in (bool, np.int8, np.uint16, np.int64):
        x = (INTS % 2).astype(dtype) if dtype is bool else INTS.astype(dtype)
        for axes in ((), (1,), (0, 2)):
            np.testing.assert_array_equal(lax.reduce_xor(x, axes), np.bitwise_xor.reduce(x, axis=axes))
    with pytest.raises(TypeError, match="reduce_xor does not accept dtype float32"):
        lax.reduce_xor(X, (0,))


def test_initial_values_can_be_mapped_and_differentiated() -> None:
    initial = np.array([1.0, 3.0], "f")

    def f(v: Any) -> Any:
        return lax.reduce(X, v, product(corejax), (1,))

    np.testing.assert_allclose(corejax.vmap(f)(initial), np.stack([np.asarray(f(v)) for v in initial]), rtol=1e-6)
    np.testing.assert_allclose(corejax.jacobian(f)(initial[1]), X.prod(1), rtol=1e-5)


def test_a_function_is_traced_once_for_its_types() -> None:
    traced = []

    def combine(a: Any, b: Any) -> Any:
        traced.append(a)
        return a * b

    for _ in range(3):
        lax.reduce(X, 1.0, combine, (0,))
    assert len(traced) == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lax.reduce(X, 0.0, lambda a, b: (a, b), (0,)), TypeError, "structure"),
        (lambda: lax.reduce(X, 0.0, lambda a, b: jnp.ones(2), (0,)), TypeError, r"f32\[\] and returns f32\[2\]"),
        (lambda: lax.reduce(X, 0.0, 3, (0,)), TypeError, "got 3"),
        (lambda: lax.reduce(X, 0.0, lax.add, (3,)), ValueError, "axis 3 is out of bounds"),
        (lambda: lax.reduce(X, 0.0, lax.add, (0, -3)), ValueError, "duplicate value in 'axes'"),
        (lambda: lax.reduce((X, X[0]), (0.0, 0.0), lambda a, b: a, (0,)), TypeError, "must have the same shape"),
        (lambda: lax.reduce(X, np.zeros(2, "f"), lambda a, b: a + b, (0,)), TypeError, "has to be a scalar"),
        (lambda: lax.reduce(X, [0.0], lax.add, (0,)), ValueError, "structure"),
        (
            lambda: corejax.jit(lambda t: lax.reduce(X, 0.0, lambda a, b: a + t * b, (0,)))(2.0),
            NotImplementedError,
            "closes over a value that is being traced",
        ),
    ],
)
def test_what_does_not_fit_is_named(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
