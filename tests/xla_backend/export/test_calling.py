"""`call_exported` under transformations, beside the function that was exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export, lax
from corejax.errors import NotDifferentiableError
from corejax.extend.transforms import float0

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
W = np.linspace(0, 1, 9, dtype=np.float32).reshape(3, 3)


def layer(x: Any, w: Any, n: Any) -> Any:
    """Results of several types: a differentiable one, an integer, one that depends on the first argument only."""
    return jnp.tanh(x @ w) * n, n + 1, jnp.sum(x)


CALL = export.deserialize(export.export(corejax.jit(layer))(X, W, np.int32(2)).serialize(vjp_order=2)).call


def loss(call: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar of two calls."""

    def scalar(x: Any, w: Any) -> Any:
        y, m, s = call(x, w, np.int32(2))
        return jnp.sum(call(y, w * 0.5, m)[0] ** 2) + s

    return scalar


COMPOSITIONS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "grad": lambda f: corejax.grad(loss(f), argnums=(0, 1))(X, W),
    "jit of grad": lambda f: corejax.jit(corejax.grad(loss(f), argnums=(0, 1)))(X, W),
    "grad of jit": lambda f: corejax.grad(corejax.jit(loss(f)))(X, W),
    "second derivatives": lambda f: corejax.grad(lambda w: jnp.sum(corejax.grad(loss(f), 1)(X, w) ** 2))(W),
    "vmap": lambda f: corejax.vmap(loss(f), in_axes=(0, None))(np.stack([X, 2 * X]), W),
    "vmap over both": lambda f: corejax.vmap(f, in_axes=(2, 0, None), out_axes=(1, 0, 0))(
        np.stack([X, 2 * X], 2), np.stack([W, W]), np.int32(2)
    ),
    "jit of vmap of grad": lambda f: corejax.jit(corejax.vmap(corejax.grad(loss(f)), (0, None)))(np.stack([X, -X]), W),
    "grad of vmap": lambda f: corejax.grad(
        lambda w: corejax.vmap(loss(f), in_axes=(0, None))(np.stack([X, -X]), w).sum()
    )(W),
    "grad of scan": lambda f: corejax.grad(
        lambda w: jnp.sum(lax.scan(lambda x, _: (f(x, w, np.int32(1))[0], None), X, None, length=3)[0])
    )(W),
    "jacrev": lambda f: corejax.jacrev(lambda w: f(X, w, np.int32(2))[0])(W),
    "jvp": lambda f: corejax.jvp(lambda x, w: f(x, w, np.int32(2))[::2], (X, W), (2 * X, W)),
    "jvp by one argument": lambda f: corejax.jvp(lambda w: f(X, w, np.int32(2))[0], (W,), (W + 1,)),
    "jit of jacfwd": lambda f: corejax.jit(corejax.jacfwd(lambda w: f(X, w, np.int32(2))[0]))(W),
    "checkpoint": lambda f: corejax.grad(corejax.checkpoint(loss(f)), argnums=(0, 1))(X, W),
    "cond": lambda f: corejax.jit(lambda p: lax.cond(p, lambda: loss(f)(X, W), lambda: jnp.float32(0)))(True),
    "linear part of it": lambda f: corejax.vjp(lambda x: f(x, W, np.int32(3)), X)[1](
        (np.ones_like(X), np.zeros((), float0), np.float32(1))
    ),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compositions_are_those_of_the_function(name: str) -> None:
    got, wanted = COMPOSITIONS[name](CALL), COMPOSITIONS[name](layer)
    assert corejax.tree_util.tree_structure(got) == corejax.tree_util.tree_structure(wanted)
    for a, b in zip(*map(corejax.tree_util.tree_leaves, (got, wanted)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_an_empty_batch() -> None:
    out, count, total = corejax.vmap(CALL, in_axes=(0, None, None))(np.zeros((0, 2, 3), np.float32), W, np.int32(2))
    assert (out.shape, count.shape, total.shape) == ((0, 2, 3), (0,), (0,))


def test_the_vjp_by_itself() -> None:
    exported = export.export(corejax.jit(layer))(X, W, np.int32(2))
    ct = np.full_like(X, 0.5)
    cts = exported.vjp().call(X, W, np.int32(2), ct, None, np.float32(1))
    wanted = corejax.vjp(lambda x, w: layer(x, w, np.int32(2))[::2], X, W)[1]((ct, np.float32(1)))
    assert cts[2] is None and exported.vjp() is exported.vjp()
    for a, b in zip(cts, wanted, strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_functions_of_integers_have_zero_derivatives() -> None:
    found = export.deserialize(export.export(corejax.jit(lambda n: n * 2))(np.int32(1)).serialize(vjp_order=1))
    assert found.vjp().call(np.int32(1), None) == (None,)
    gradient = corejax.grad(lambda x: x * found.call(np.int32(3)) + found.call(jnp.int32(x)).astype("float32"))
    assert gradient(2.0) == 6.0


def test_unused_and_constant_arguments_have_zero_derivatives() -> None:
    found = export.export(corejax.jit(lambda x, y: (x * 2, 1.0)))(X, X)
    gradient = corejax.grad(lambda x, y: jnp.sum(found.call(x, y)[0]) + found.call(x, y)[1], argnums=(0, 1))(X, X)
    np.testing.assert_array_equal(gradient[0], np.full_like(X, 2))
    np.testing.assert_array_equal(gradient[1], np.zeros_like(X))


def test_calls_are_dropped_where_nobody_uses_them() -> None:
    text = corejax.jit(lambda x: (CALL(x, W, np.int32(2)), x * 2)[1]).lower(X).compile().as_text()
    assert "tanh" not in text


# -- what is refused -----------------------------------------------------------------------------------------------


def test_forward_mode_needs_one_order_more() -> None:
    once = export.deserialize(export.export(corejax.jit(jnp.sin))(1.0).serialize(vjp_order=1)).call
    for forward in (corejax.jacfwd(once), lambda x: corejax.jvp(once, (x,), (x,)), corejax.jit(corejax.jacfwd(once))):
        with pytest.raises(NotDifferentiableError, match=r"sin has the derivatives for reverse.*vjp_order=2\)"):
            forward(1.0)


def test_derivatives_beyond_those_in_the_artifact() -> None:
    none = export.deserialize(export.export(corejax.jit(jnp.sin))(1.0).serialize()).call
    with pytest.raises(NotDifferentiableError, match=r"sin has no vjp.*serialize\(vjp_order=1\)"):
        corejax.grad(none)(1.0)
    once = export.deserialize(export.export(corejax.jit(jnp.sin))(1.0).serialize(vjp_order=1))
    assert corejax.grad(once.call)(0.0) == 1.0
    with pytest.raises(NotDifferentiableError, match=r"vjp\(sin\) has no vjp"):
        corejax.grad(corejax.grad(once.call))(1.0)
    with pytest.raises(ValueError, match="serialized without"):
        once.vjp().vjp()
    with pytest.raises(ValueError, match="serialized without"):
        once.serialize(vjp_order=2)


def test_arguments_of_another_structure_or_type() -> None:
    with pytest.raises(
        ValueError, match=r"^call of the exported function layer: it takes arguments of the structure .*, got"
    ):
        CALL(X, W)
    with pytest.raises(
        ValueError,
        match=r"^call of the exported function layer: it takes f32\[3,3\] as argument args\[1\], got f32\[2,3\]",
    ):
        CALL(X, X, np.int32(2))
    with pytest.raises(ValueError, match=r"layer: it takes i32\[\] as argument args\[2\], got f32\[\]"):
        corejax.jit(lambda n: CALL(X, W, n))(2.0)
    with pytest.raises(TypeError, match=r"function layer: argument args\[2\] is 'two'"):
        CALL(X, W, "two")
    np.testing.assert_allclose(CALL(X, W, 2)[0], layer(X, W, 2)[0], rtol=1e-6)


def test_names_of_keyword_arguments() -> None:
    found = export.export(corejax.jit(lambda *, p: p["w"]))(p={"w": X})
    with pytest.raises(ValueError, match=r"as argument kwargs\['p'\]\['w'\], got"):
        found.call(p={"w": W})


def test_calls_after_caches_were_cleared() -> None:
    before = CALL(X, W, np.int32(2))[0]
    corejax.clear_caches()
    np.testing.assert_array_equal(CALL(X, W, np.int32(2))[0], before)
