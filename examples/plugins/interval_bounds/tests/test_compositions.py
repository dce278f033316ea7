"""With the other transformations, around them and inside, in every order."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from boxes import box, check_inside, points

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.interval_bounds import Interval, propagate

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 4)).astype(np.float32)
B = RNG.normal(size=4).astype(np.float32)


def layer(x: Any) -> Any:
    """A function with most kinds of rules in it."""
    y = jnp.tanh(x @ W + B)
    y = jnp.where(y > 0, y, 0.1 * y) * jnp.sin(y)
    return lax.scan(lambda c, _: (c * 0.9 + jnp.exp(-y), None), y, None, length=3)[0]


def assert_same(got: Any, want: Any, rtol: float = 2e-5) -> None:
    assert corejax.tree.structure(got) == corejax.tree.structure(want)
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-6)


def test_jit_of_propagate_and_propagate_of_jit() -> None:
    operand = box(RNG, (3,), -1, 1)
    want = propagate(layer)(operand)
    assert_same(corejax.jit(propagate(layer))(operand), want)
    assert_same(propagate(corejax.jit(layer))(operand), want)
    assert_same(corejax.jit(propagate(corejax.jit(layer)))(operand), want)


def test_a_jitted_function_stays_one_program_and_is_compiled_once() -> None:
    jitted = corejax.jit(layer)
    bounded = propagate(jitted)
    program = corejax.make_jaxpr(bounded)(box(RNG, (3,), -1, 1)).jaxpr
    assert [eqn.primitive.name for eqn in program.eqns] == ["xla_call"]
    bounded(box(RNG, (3,), -1, 1))
    second = corejax.explain(bounded)(box(RNG, (3,), -1, 1))
    assert not [event for event in second.jit if event.kind == "compile"]


def test_vmap_of_propagate_and_propagate_of_vmap() -> None:
    operand = box(RNG, (5, 3), -1, 1)
    each = [propagate(layer)(Interval(lower, upper)) for lower, upper in zip(operand.lower, operand.upper, strict=True)]
    want = corejax.tree.map(lambda *xs: jnp.stack(xs), *each)
    assert_same(corejax.vmap(propagate(layer))(operand), want)
    assert_same(propagate(corejax.vmap(layer))(operand), want)
    assert_same(corejax.jit(corejax.vmap(propagate(layer)))(operand), want)
    assert_same(propagate(corejax.jit(corejax.vmap(layer)))(operand), want)


def test_vmap_with_a_plain_operand_that_is_mapped() -> None:
    operand, scale = box(RNG, (3,), -1, 1), RNG.normal(size=5).astype(np.float32)
    mapped = corejax.vmap(propagate(lambda x, s: layer(x) * s), in_axes=(None, 0))(operand, scale)
    for i, s in enumerate(scale):
        want = propagate(lambda x, s=s: layer(x) * s)(operand)
        assert_same(corejax.tree.map(lambda x, i=i: x[i], mapped), want)


def test_gradients_of_bounds() -> None:
    center, radius = RNG.normal(size=3).astype(np.float32), np.float32(0.1)

    def width(weights: Any) -> Any:
        bounds = propagate(lambda x: jnp.tanh(x @ weights))(Interval.around(center, radius))
        return bounds.width.sum()

    def value(weights: Any) -> float:
        with corejax.config.override(default_dtype_bits=64):
            wide = Interval.around(center.astype(np.float64), 0.1)
            return float(propagate(lambda x: jnp.tanh(x @ weights), rounding="nearest")(wide).width.sum())

    gradient = np.asarray(corejax.grad(width)(W))
    np.testing.assert_allclose(corejax.jit(corejax.grad(width))(W), gradient, rtol=1e-4, atol=1e-6)
    step = 1e-5
    for index in [(0, 0), (1, 3), (2, 2)]:
        bump = np.zeros(W.shape)
        bump[index] = step
        wanted = (value(W.astype(np.float64) + bump) - value(W.astype(np.float64) - bump)) / (2 * step)
        np.testing.assert_allclose(gradient[index], wanted, rtol=1e-3, atol=1e-4)


def test_bounds_of_gradients_hold() -> None:
    operand = box(RNG, (3,), -1, 1)
    gradient = corejax.grad(lambda x: layer(x).sum())
    for bounded in (propagate(gradient), propagate(corejax.jit(gradient)), corejax.jit(propagate(gradient))):
        bounds = bounded(operand)
        for x in points(RNG, operand, 10):
            check_inside(bounds, gradient(x), "gradient")


def test_bounds_of_a_derivative_of_bounds() -> None:
    # Two propagations at once: the inner one's bounds are between the outer one's.
    operand = Interval(np.float32(0.2), np.float32(0.4))

    def inner(x: Any) -> Any:
        return propagate(lambda y: jnp.exp(y) * x)(Interval(x, x + 1)).upper

    bounds = propagate(inner)(operand)
    for x in points(RNG, operand, 10):
        check_inside(bounds, inner(x), "nested")


def test_a_value_of_an_outer_propagation_is_a_constant_inside() -> None:
    def fun(x: Any) -> Any:
        inside = propagate(lambda y: y + x)(Interval(np.float32(0), np.float32(1)))
        return inside.lower, inside.upper, corejax.grad(lambda z: z * x)(2.0)

    lower, upper, slope = propagate(fun, rounding="nearest")(Interval(np.float32(3), np.float32(4)))
    assert [float(lower.lower), float(upper.upper)] == pytest.approx([3, 5], rel=1e-6)
    assert [float(slope.lower), float(slope.upper)] == [3, 4]


def test_forward_mode_around_and_inside() -> None:
    operand = box(RNG, (3,), -1, 1)
    direction = np.ones(3, np.float32)

    def push(x: Any) -> Any:
        return corejax.jvp(layer, (x,), (direction,))

    bounds = propagate(push)(operand)
    for x in points(RNG, operand, 6):
        for bound, value in zip(bounds, push(x), strict=True):
            check_inside(bound, value, "jvp")

    def of_lower(lower: Any) -> Any:
        return propagate(layer)(Interval(lower, operand.upper)).lower

    _, tangent = corejax.jvp(of_lower, (np.asarray(operand.lower),), (direction,))
    assert np.all(np.isfinite(tangent))


@pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])
def test_cond_takes_what_is_possible(sign: float) -> None:
    operand = Interval(np.float32(sign - 0.5), np.float32(sign + 0.5))

    def fun(x: Any) -> Any:
        return lax.cond(x > 0, lambda: 2 * x, lambda: 10 - x)

    bounds = propagate(fun)(operand)
    assert_same(propagate(corejax.jit(fun))(operand), bounds)
    assert_same(corejax.vmap(propagate(fun))(Interval(operand.lower[None], operand.upper[None])).lower[0], bounds.lower)
    wanted = {-1.0: (10.5, 11.5), 0.0: (-1, 10.5), 1.0: (1, 3)}[sign]
    np.testing.assert_allclose([bounds.lower, bounds.upper], wanted, rtol=1e-5)


def test_pytrees_keywords_and_aux_arguments() -> None:
    params = {"w": box(RNG, (3, 4), -1, 1), "b": B}

    def net(params: Any, x: Any, *, scale: Any = 1.0) -> Any:
        return {"y": [jnp.tanh(x @ params["w"] + params["b"]) * scale], "n": x.shape[0]}

    bounds = propagate(net)(params, np.ones(3, np.float32), scale=Interval(1.0, 2.0))
    assert corejax.tree.structure(bounds, is_leaf=lambda x: isinstance(x, Interval)).num_leaves == 2
    assert float(bounds["n"].lower) == float(bounds["n"].upper) == 3
    assert bounds["y"][0].shape == (4,)
    for w in points(RNG, params["w"], 5):
        check_inside(bounds["y"][0], net({"w": w, "b": B}, np.ones(3, np.float32), scale=1.5)["y"][0])


def test_an_interval_is_a_pytree() -> None:
    operand = Interval(np.zeros(3), np.ones(3))
    doubled = corejax.tree.map(lambda x: 2 * x, operand)
    assert isinstance(doubled, Interval) and np.all(np.asarray(doubled.upper) == 2)
    paths = [corejax.tree_util.keystr(path) for path, _ in corejax.tree_util.tree_leaves_with_path({"x": operand})]
    assert paths == ["['x'].lower", "['x'].upper"]


def test_threads_do_not_mix() -> None:
    found: dict[int, Any] = {}

    def work(i: int) -> None:
        for _ in range(20):
            rounding = "nearest" if i % 2 else "outward"
            found[i] = propagate(lambda x: jnp.exp(x) + i, rounding=rounding)(Interval(np.float32(0), np.float32(1)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, bounds in found.items():
        assert float(bounds.lower) == pytest.approx(1 + i, abs=1e-5)
        assert (float(bounds.lower) == 1 + i) == bool(i % 2)
