"""While loops on bounds, cumulative operations, and what is reached through a decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from boxes import box, check_inside, in_double, known_fraction, points

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.interval_bounds import Interval, propagate


def newton(a: Any, x: Any) -> Any:
    """A square root: how many iterations it takes depends on the numbers."""

    def step(state: Any) -> Any:
        y, count = state
        return 0.5 * (y + a / y), count + 1

    return lax.while_loop(lambda s: s[0] * s[0] > a * 1.001, step, (x, np.int32(0)))


def halved(x: Any) -> Any:
    """Until all are small; a counter goes along, and an array."""

    def step(state: Any) -> Any:
        y, count, total = state
        return y / 2, count + 1, total + y

    return lax.while_loop(lambda s: jnp.max(s[0]) > 0.1, step, (x, 0, x * 0))


def grows(x: Any) -> Any:
    """Widened: nothing but the signs can be said in the end."""
    return lax.while_loop(lambda s: s[0] < 1e6, lambda s: (s[0] + x, s[1] + s[0], -abs(s[2])), (x, x, x))


def counted(x: Any) -> Any:
    """The condition depends on no interval."""
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.sin(s[1]) + x), (0, x))


def clocked(n: Any) -> Any:
    """A trip count within bounds."""
    return lax.fori_loop(0, n, lambda i, y: y + i * 0.5, np.float32(1))


def together(x: Any) -> Any:
    """A loop under vmap: as many iterations as the slowest element takes."""
    return corejax.vmap(lambda y: lax.while_loop(lambda z: z < 3.0, lambda z: z * 1.5 + 0.1, y))(x)


CASES = {
    "newton": (newton, ((), 2.0, 3.0), ((), 3.0, 4.0)),
    "halved": (halved, ((3,), 0.0, 2.0)),
    "grows": (grows, ((), 50.0, 5e4)),
    "counted": (counted, ((2, 2), -1.0, 1.0)),
    "together": (together, ((4,), 0.1, 2.0)),
}


def check(fun: Any, boxes: list[Interval], rng: np.random.Generator, transformed: Any = propagate) -> Any:
    bounds = transformed(fun)(*boxes)
    flat = corejax.tree_util.tree_leaves(bounds, is_leaf=lambda x: isinstance(x, Interval))
    for row in zip(*(points(rng, b, 6) for b in boxes), strict=True):
        for f in (fun, lambda *xs: in_double(fun, xs)):
            for bound, value in zip(flat, corejax.tree_util.tree_leaves(f(*row)), strict=True):
                check_inside(bound, value)
    return flat


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_while(name: str, compiled: bool) -> None:
    fun, *ranges = CASES[name]
    rng = np.random.default_rng(1)
    for _ in range(4):
        boxes = [box(rng, *each) for each in ranges]
        check(fun, boxes, rng, (lambda f: corejax.jit(propagate(f))) if compiled else propagate)


def test_bounds_of_loops_say_something() -> None:
    rng = np.random.default_rng(0)
    y, count, total = check(halved, [Interval(np.float32([0.5, 1.0]), np.float32([0.6, 2.0]))], rng)
    assert np.all(np.asarray(y.upper) <= 0.13) and (int(count.lower), int(count.upper)) == (4, 5)
    assert known_fraction(total) == 1


def test_an_iteration_count_that_is_known_is_followed_to_the_end() -> None:
    sure = propagate(counted)(Interval(0.1, 0.2))
    assert int(sure[0]) if not isinstance(sure[0], Interval) else sure[0].lower == sure[0].upper == 5
    written_out = propagate(lambda x: [y := x, *[y := jnp.sin(y) + x for _ in range(5)]][-1])(Interval(0.1, 0.2))
    np.testing.assert_allclose(sure[1].lower, written_out.lower, rtol=1e-6)
    np.testing.assert_allclose(sure[1].upper, written_out.upper, rtol=1e-6)


def test_a_trip_count_within_bounds() -> None:
    bounds = propagate(clocked)(Interval(2, 4))
    np.testing.assert_allclose([bounds.lower, bounds.upper], [clocked(2), clocked(4)], rtol=1e-5)


def test_what_grows_for_ever_is_widened() -> None:
    """A loop that need not end for some numbers in the box: what it may end with, if it does."""
    bounds = propagate(lambda x: lax.while_loop(lambda y: y < 10.0, lambda y: y * x, x))(Interval(0.5, 2.0))
    assert bounds.lower <= 10 and bounds.upper >= 16
    first, second, sign = propagate(grows)(Interval(1.0, 2.0))
    assert np.isposinf(first.upper) and np.isposinf(second.upper) and sign.upper <= 0 and sign.lower >= -2.1


def test_effects_are_refused_where_the_condition_is_open() -> None:
    from corejax.extend import Primitive

    note_p = Primitive("loops.note", decomposition=lambda x: x * 1, effects=("loops.note",))
    with pytest.raises(NotImplementedError, match=r"propagate: a loop .* effects \(loops.note\)"):
        propagate(lambda x: lax.while_loop(lambda y: y < 3.0, lambda y: note_p.bind(y) + 1, x))(Interval(0.0, 1.0))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_cumulative(name: str, reverse: bool) -> None:
    rng = np.random.default_rng(2)
    fun = getattr(lax, name)
    for shape, axis in (((5,), 0), ((2, 7), 1), ((3, 2), 0), ((2, 0), 1), ((1,), 0)):
        for low, high in ((-2.0, 2.0), (0.0, 3.0)):
            (bounds,) = check(lambda x: fun(x, axis, reverse), [box(rng, shape, low, high)], rng)  # noqa: B023
            assert known_fraction(bounds) == 1 or not np.prod(shape)
    ints = Interval(np.array([-2, 1, 3], np.int32), np.array([2, 1, 4], np.int32))
    if name != "cumlogsumexp":
        check(lambda x: fun(x, 0, reverse), [ints], rng)
    tight = propagate(lambda x: fun(x, 0, reverse), rounding="nearest")(Interval(*np.float32([[1, 2], [2, 3]])))
    if name == "cumsum":
        assert np.asarray(tight.lower).tolist() == ([3, 2] if reverse else [1, 3])


@corejax.custom_jvp
def safe_log(x: Any) -> Any:
    return jnp.log(x)


safe_log.defjvp(lambda primals, tangents: (safe_log(*primals), tangents[0] / primals[0]))


@corejax.custom_vjp
def clipped_gradient(x: Any) -> Any:
    return jnp.sin(x) * 2


clipped_gradient.defvjp(lambda x: (clipped_gradient(x), x), lambda x, ct: (jnp.clip(ct, -1, 1) * jnp.cos(x),))


@corejax.custom_batching.custom_vmap
def squared(x: Any) -> Any:
    return x * x + 1


squared.def_vmap(lambda axis_size, batched, x: (x * x + 1, batched[0]))

DECOMPOSED = {
    "custom_jvp_call": safe_log,
    "custom_vjp_call": clipped_gradient,
    "remat2": corejax.checkpoint(lambda x: jnp.exp(x) * x),
    "name": lambda x: corejax.ad_checkpoint.checkpoint_name(jnp.exp(x), "e"),
    "optimization_barrier": lambda x: lax.optimization_barrier((x * 2, jnp.exp(x)))[1],
    "linear_call": lambda x: corejax.custom_derivatives.linear_call(
        lambda r, y: r * y, lambda r, ct: r * ct, np.float32(2), x
    ),
    "custom_vmap_call": squared,
}


@pytest.mark.parametrize("name", DECOMPOSED)
def test_primitives_with_a_decomposition(name: str) -> None:
    fun, rng = DECOMPOSED[name], np.random.default_rng(3)
    x = box(rng, (3,), 0.5, 2.0)
    assert name in str(corejax.make_jaxpr(fun)(x.lower))
    for each in (fun, corejax.jit(fun)):
        (bounds,) = check(each, [x], rng)
        assert known_fraction(bounds) == 1
    (bounds,) = check(fun, [x], rng, lambda f: corejax.jit(propagate(f)))
    assert known_fraction(bounds) == 1
