"""Interrupts while programs are traced, compiled and run: what comes after them is right."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from tests.kernel.interrupting import interrupt_everywhere, thread_state

X = np.array([0.5, -1.0, 2.0], np.float32)


@cj.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))


def loop(x):
    with cj.named_scope("loop"):
        return lax.scan(lambda c, y: (c * jnp.sin(y), c), x[0], x)[0] + lax.cond(x[0] > 0, jnp.sum, jnp.prod, x)


ACTIONS = {
    "jit": lambda: cj.jit(lambda x: jnp.sum(cj.jit(jnp.sin)(x)))(X),
    "grad of loops": lambda: cj.grad(loop)(X),
    "vmap of custom_vjp": lambda: cj.vmap(cj.grad(lambda x: jnp.sum(doubled(x))))(np.stack([X, X])),
    "explain": lambda: cj.explain(cj.jit(lambda x: x + 1))(X),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_an_interrupt_anywhere_changes_no_later_result(name: str) -> None:
    action = ACTIONS[name]
    wanted = action()
    before, count = thread_state(), [0]

    def after() -> None:
        assert thread_state() == before
        count[0] += 1
        if count[0] % 10 == 0:
            again = action()
            if name != "explain":
                np.testing.assert_allclose(again, wanted, rtol=1e-6)

    assert interrupt_everywhere(action, after, "corejax", step=53) > 10


def test_an_interrupt_leaves_no_mesh_and_no_line() -> None:
    mesh, before = cj.make_mesh((1,), ("d",)), thread_state()

    def set_for_good() -> None:
        changed = cj.set_mesh(mesh)
        sys.setprofile(None)
        changed.restore()

    def after() -> None:
        assert thread_state() == before

    set_for_good()
    assert interrupt_everywhere(set_for_good, after, "corejax") > 10
    gradient = cj.grad(lambda x: jnp.sum(jnp.linalg.inv(x)))
    with cj.debug_nans(True):
        before = thread_state()
        assert interrupt_everywhere(lambda: gradient(np.eye(2, dtype="f")), after, "restoring", step=3) > 3


STORM = """
    import gc, random, signal, sys
    import numpy as np
    import corejax as cj, corejax.numpy as jnp
    from corejax import lax
    from corejax.core.trace import state as trace_state
    from corejax.extend import bottom_trace

    X = np.array([0.5, -1.0, 2.0], np.float32)
    f = lambda x: jnp.sum(jnp.sin(x) * x)
    def loop(x):
        return lax.scan(lambda c, y: (c * jnp.sin(y), c), x[0], x)[0]
    actions = [
        lambda: cj.make_jaxpr(cj.grad(f))(X),
        lambda: cj.vmap(cj.grad(f), axis_name="i")(np.stack([X, X])),
        lambda: cj.grad(loop)(X),
        lambda: cj.jit(lambda x: f(x) + 1)(X),
        lambda: cj.explain(f)(X),
        lambda: cj.make_jaxpr(lambda x: cj.jit(f)(x) + cj.jit(f)(x), axis_env=[("k", 2)])(X),
    ]
    rng, hits = random.Random(0), 0
    wanted = cj.grad(f)(X), cj.jit(cj.grad(loop))(X)
    for n in range(SIGNALS):
        try:
            # Again after a while: Python drops what is raised in a finalizer.
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 4e-3), 0.5)
            while True:
                actions[n % len(actions)]()
        except (KeyboardInterrupt, RuntimeError) as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            # What interrupts the making of a class, in the import of a standard module say, is Python's RuntimeError.
            assert KeyboardInterrupt in (type(error), type(error.__cause__)), repr(error)
            hits += 1
        assert trace_state.trace is bottom_trace() and trace_state.scope == () and trace_state.axis_env == (), n
        assert trace_state.contexts == 0 and trace_state.last_notified is False and gc.isenabled(), n
        assert trace_state.source is None and not cj.observe.observed(), n
    np.testing.assert_allclose(cj.grad(f)(X), wanted[0])
    np.testing.assert_allclose(cj.jit(cj.grad(loop))(X), wanted[1])
    print("hits", hits)
"""


@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="a system without timers")
def test_a_storm_of_signals() -> None:
    signals = int(os.environ.get("COREJAX_TEST_SIGNALS", "200"))
    handler = "import signal; signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
    source = handler + textwrap.dedent(STORM).replace("SIGNALS", str(signals))
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=300)
    assert done.stdout == f"hits {signals}\n", done.stderr[-3000:]
