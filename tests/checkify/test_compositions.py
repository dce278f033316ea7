"""With other transformations, around `checkify` and inside, in every order."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax
from corejax.extend import bottom_trace, current_trace
from tests.checkify.oracle import OURS, Make, Pair, message


def layer(m: Any) -> Any:
    """A loop with a conditional in it, a jitted function, indices and checks."""

    @m.jax.jit
    def root(x: Any) -> Any:
        return m.np.sqrt(x)

    def f(x: Any) -> Any:
        def body(carry: Any, i: Any) -> Any:
            m.checkify.check(carry < 50, "the carry is {}", carry)
            carry = m.lax.cond(carry > 5, lambda c: c - 3, lambda c: c * 2, carry)
            return carry + x[i], root(carry)

        last, roots = m.lax.scan(body, x[0], m.np.arange(3))
        return last / x[1] + roots.sum()

    return f


POINTS = [np.array(x, np.float32) for x in ([1, 2, 3], [1, 0, 1], [-1, 1, 1], [60, 1, 1], [1, 90, 1])]
INSIDE: dict[str, Make] = {
    "plain": layer,
    "vmap": lambda m: lambda x: m.jax.vmap(lambda c: m.np.log(c) / (c - 3))(x),
}
DERIVATIVES: dict[str, Make] = {
    "jit of grad": lambda m: m.jax.jit(m.jax.grad(layer(m))),
    "grad of checkpoint": lambda m: lambda x: m.jax.grad(m.jax.checkpoint(lambda c: m.np.sqrt(c) * c))(x[1]),
}


def test_inside() -> None:
    pair = Pair(INSIDE)
    said = [pair.agree(x) for x in POINTS]
    for name in INSIDE:
        assert len({found[name] for found in said}) >= 3, name


def test_derivatives_inside() -> None:
    """With the users' checks too, which jax loses where a loop is differentiated."""
    pair = Pair(DERIVATIVES, "automatic_checks")
    for x in POINTS[:4]:
        pair.agree(x)
    for gradient in (corejax.grad(layer(OURS)), lambda x: corejax.vjp(layer(OURS), x)[1](1.0)):
        assert str(message(gradient, jnp.asarray(POINTS[3]))).startswith("the carry is 60.0 ")


def with_aux(m: Any, make: Make) -> Any:
    def loss(x: Any) -> Any:
        error, out = m.checkify.checkify(make(m), m.checkify.all_checks)(x)
        return out, error

    return loss


def test_outside() -> None:
    """Gradients of checked functions, over batches, compiled or not: the error is the function's own."""
    plain = checkify.checkify(layer(OURS), checkify.all_checks)
    gradient = corejax.grad(with_aux(OURS, layer), has_aux=True)
    batch = jnp.stack([jnp.asarray(x) for x in POINTS])
    slopes, errors = corejax.jit(corejax.vmap(gradient))(batch)
    found = errors.get_exception().error_mapping
    for i, x in enumerate(batch):
        slope, error = gradient(x)
        np.testing.assert_allclose(slopes[i], slope, rtol=1e-5)
        if np.all(np.isfinite(slope)):
            np.testing.assert_allclose(slope, corejax.grad(layer(OURS))(x) if plain(x)[0].get() is None else slope)
        assert error.get() == plain(x)[0].get()
        assert str(found.get((i,))) == str(error.get())


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: corejax.jit(f),
        lambda f: lambda x: corejax.jvp(f, (x,), (x,), has_aux=False)[0],
        lambda f: lambda x: corejax.vjp(f, x)[0],
        lambda f: lambda x: corejax.linearize(f, x)[0],
        lambda f: lambda x: lax.scan(lambda c, x: (c, f(x)), 0, x[None])[1],
        lambda f: corejax.checkpoint(f),
    ],
)
def test_every_transformation_takes_the_error_along(transform: Any) -> None:
    checked = checkify.checkify(layer(OURS), checkify.all_checks)
    for x in POINTS[:3]:
        error, _ = transform(checked)(jnp.asarray(x))
        assert str(error.get()).replace("at mapped index 0: ", "") == str(checked(jnp.asarray(x))[0].get())


def test_twice() -> None:
    """Inside, only NaN is looked for; outside, the rest."""

    def f(x: Any) -> Any:
        error, out = checkify.checkify(lambda x: jnp.log(x) / x, checkify.nan_checks)(x)
        return error, out

    outer, (inner, _) = checkify.checkify(f, checkify.div_checks)(jnp.float32(0))
    assert "division by zero" in outer.get() and inner.get() is None
    outer, (inner, _) = corejax.jit(checkify.checkify(f, checkify.div_checks))(jnp.float32(-1))
    assert outer.get() is None and "primitive: log" in inner.get()


def test_unused_errors_are_dead_code() -> None:
    program = corejax.make_jaxpr(lambda x: checkify.checkify(layer(OURS), checkify.all_checks)(x)[1])(POINTS[0])
    plain = corejax.make_jaxpr(layer(OURS))(POINTS[0])
    slimmed, _ = corejax.extend.dce_jaxpr(program, [True])
    assert len(slimmed.eqns) == len(plain.eqns)
    (scan,) = (eqn for eqn in slimmed.eqns if eqn.primitive.name == "scan")
    assert scan.params["num_carry"] == 1


def test_few_equations() -> None:
    """Two for the first failure, and four or five for each further one."""
    program = corejax.make_jaxpr(checkify.checkify(lambda x: jnp.exp(jnp.sin(x)), checkify.nan_checks))
    assert len(program(1.0).eqns) == 6
    assert len(program(jnp.ones(3)).eqns) == 8


def test_threads() -> None:
    checked = checkify.checkify(layer(OURS), checkify.all_checks)
    wanted = [checked(jnp.asarray(x))[0].get() for x in POINTS]
    found: dict[int, Any] = {}

    def run(i: int) -> None:
        found[i] = [checked(jnp.asarray(x))[0].get() for x in POINTS]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[i] == wanted for i in range(4))


def test_an_interrupt_leaves_nothing_behind() -> None:
    """At many places of a call, by a trace function; then everything works as before."""
    checked = checkify.checkify(layer(OURS), checkify.all_checks)
    x = jnp.asarray(POINTS[1])
    wanted = checked(x)[0].get()
    count = stop = 0

    def interrupt(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":  # a generator that ends early has the others: what is raised then is lost
            count += 1
            if count == stop:
                raise KeyboardInterrupt
        return interrupt

    def interrupted() -> bool:
        nonlocal count
        count, earlier = 0, sys.gettrace()
        gc.disable()  # what is raised in a function that a collection calls is lost
        try:
            sys.settrace(interrupt)
            checked(x)
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(earlier)
            gc.enable()
        return False

    assert not interrupted()
    events = count
    for place in range(events // 12, events, events // 12):
        stop = place
        assert interrupted()
        assert current_trace() is bottom_trace()
        assert checked(x)[0].get() == wanted


def test_settings_are_part_of_what_is_remembered() -> None:
    f = corejax.jit(lambda x: x / (x - 1))
    checked = checkify.checkify(f, checkify.all_checks)
    assert "division" in str(checked(1)[0].get())
    with corejax.config.override(default_dtype_bits=64):
        error, out = checked(1)
        assert "division" in str(error.get()) and out.dtype == np.float64
    with corejax.config.override(x64_compat=True):
        assert "division" in str(checked(jnp.float32(1))[0].get())
        assert "index 7" in str(message(lambda x, i: x[i], jnp.ones(3), np.int64(7)))
