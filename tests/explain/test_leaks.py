"""`checking_leaks`: a traced value that somebody keeps is found where its transformation ends."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import grad, hessian, jit, jvp, lax, make_jaxpr, vmap
from corejax.errors import UnexpectedTracerError

pytestmark = pytest.mark.own_process  # all that a process holds is asked for who holds a tracer

SAVED: list[Any] = []
X = np.float32([1, 2, 3])


def leaky(x: Any) -> Any:
    SAVED.append(lax.mul(x, x))
    return x


class Holder:
    value: Any = None


TRANSFORMED = {
    "jit": lambda f: jit(f)(1.0),
    "grad": lambda f: grad(f)(1.0),
    "vmap": lambda f: vmap(f)(X),
    "jvp": lambda f: jvp(f, (1.0,), (1.0,)),
    "make_jaxpr": lambda f: make_jaxpr(f)(1.0),
    "grad of jit": lambda f: grad(jit(f))(1.0),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), 1.0, X),
}


@pytest.mark.parametrize("run", TRANSFORMED.values(), ids=TRANSFORMED)
def test_leaks_are_found(run: Any) -> None:
    holder = Holder()

    def into_an_object(x: Any) -> Any:
        holder.value = lax.sin(x)
        return x

    try:
        with corejax.checking_leaks():
            with pytest.raises(UnexpectedTracerError, match=r"Leaked tracer.*leaky.*held by the module .*, as 'SAVED'"):
                run(leaky)
            SAVED.clear()
            with pytest.raises(UnexpectedTracerError, match=r"Leaked tracer.*held by an object of type Holder"):
                run(into_an_object)
        run(leaky)  # nobody asks now
    finally:
        SAVED.clear()


@pytest.mark.parametrize("frozen", [False, True])
def test_a_leak_is_found_whether_or_not_the_collector_looks_at_all(frozen: bool) -> None:
    gc.freeze() if frozen else gc.unfreeze()
    try:
        with corejax.checking_leaks(), pytest.raises(UnexpectedTracerError, match=r"held by the module .*, as 'SAVED'"):
            jit(leaky)(1.0)
        with corejax.checking_leaks():
            jit(lambda x: lax.sin(x))(1.0)
        assert (gc.get_freeze_count() > 0) is frozen
    finally:
        SAVED.clear()
        gc.freeze()


def test_nothing_else_is_one() -> None:
    def f(x: Any) -> Any:
        kept = [lax.sin(x), {"a": (x,)}]
        return lax.mul(kept[0], kept[1]["a"][0])

    def total(x: Any) -> Any:
        return lax.reduce_sum(f(x), (0,))

    with corejax.checking_leaks():
        for g in (jit(vmap(jit(f))), jit(grad(jit(total))), hessian(total)):
            g(X)
        lax.scan(lambda c, x: (f(c), f(x)), 1.0, X)
        lax.cond(True, f, lambda x: x, 1.0)
        assert corejax.eval_shape(f, X).shape == (3,)


def test_bodies_may_close_over_traced_values() -> None:
    """Programs keep their functions, for messages."""

    def f(x: Any) -> Any:
        y = lax.sin(x)
        z = lax.fori_loop(0, 3, lambda i, c: lax.mul(c, y), y)
        z = lax.scan(lambda c, _: (lax.mul(c, z), None), z, None, length=2)[0]
        z = lax.cond(lax.gt(z, 0.0), lambda: y, lambda: z)
        z = lax.while_loop(lambda c: lax.lt(c, z), lambda c: lax.add(c, y), z)
        z = lax.switch(1, [lambda: y, lambda: z])
        z = lax.map(lambda c: lax.mul(c, y), lax.broadcast(z, (2,)))[0]
        z = corejax.checkpoint(lambda c: lax.mul(c, y))(z)
        return jit(lambda: lax.mul(y, z))()

    with corejax.checking_leaks():
        np.testing.assert_allclose(jit(f)(0.5), f(0.5), rtol=1e-6)
        jit(corejax.random.bits)(corejax.random.key(0))


@pytest.mark.slow
def test_what_a_program_holds_that_has_ended_is_no_leak() -> None:
    """Said by a process of its own: frames of a test runner have held its traces, which is no leak either."""
    program = """
import corejax, corejax.numpy as jnp
solved = lambda x: corejax.scipy.sparse.linalg.cg(lambda v: v * 2.0, x)[0].sum()
with corejax.checking_leaks():
    print(corejax.jit(corejax.grad(solved))(jnp.arange(1.0, 4.0)))
"""
    words = [sys.executable, "-c", program]
    assert subprocess.run(words, capture_output=True, text=True, timeout=60).stdout == "[0.5 0.5 0.5]\n"


def test_a_function_that_is_kept_keeps_what_it_closes_over() -> None:
    def f(x: Any) -> Any:
        y = lax.sin(x)
        SAVED.append(lambda: y)
        return x

    try:
        with corejax.checking_leaks(), pytest.raises(UnexpectedTracerError, match=r"held by the module .*, as 'SAVED'"):
            jit(f)(1.0)
    finally:
        SAVED.clear()
