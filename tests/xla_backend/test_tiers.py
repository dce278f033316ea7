"""`jit(f, tier="auto")`: results at once by the eager rules, and by the program when it is there."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import grad, jit, lax, value_and_grad, vmap
from corejax.extend import as_array
from corejax.extend.types import device_buffer
from corejax_xla_backend._jit import jit as jit_page

pytest.importorskip("jaxlib")

X = np.float32([1, 2, 3])


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "nothing was compiled in a minute"
        time.sleep(0.01)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The background's compilations wait until it is set."""
    opened = threading.Event()
    own = jit_page.compiled

    def compiled(*args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            assert opened.wait(60)
        return own(*args)

    monkeypatch.setattr(jit_page, "compiled", compiled)
    return opened


def test_early_results_are_those_of_the_program(gate: threading.Event) -> None:
    inner = jit(lambda w, x: lax.tanh(lax.dot(w, x)))

    def loss(params: Any, x: Any) -> Any:
        return lax.reduce_sum(inner(params["w"], x) * params["b"], (0,))

    params = {"w": np.eye(3, dtype=np.float32), "b": X}
    runs: list[Any] = []
    f = jit(value_and_grad(loss), tier="auto")
    right = jit(value_and_grad(loss))(params, X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit_page, "run", lambda *args, run=jit_page.run: runs.append(args) or run(*args))
        early = [f(params, X) for _ in range(3)]
        assert not runs, "nothing is compiled in this thread, programs inside of it included"
        gate.set()
        wait_for(lambda: bool(f(params, X)) and bool(runs))
        late = [f(params, X) for _ in range(3)]
        assert len(runs) <= 2, "the dispatcher has it"
    flat = corejax.tree_util.tree_leaves
    for results in (*early, *late):
        for got, wanted in zip(flat(results), flat(right), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4)
            assert (got.dtype, got.shape, got.weak_type) == (wanted.dtype, wanted.shape, wanted.weak_type)


@pytest.mark.filterwarnings("error")
def test_early_results_overflow_in_silence(gate: threading.Event) -> None:
    f = jit(lambda x: x * np.float32(1e38) / 0.0, tier="auto")
    assert np.isinf(np.asarray(f(X * 100))).all()
    gate.set()


def test_transformations_and_static_arguments() -> None:
    f = jit(lambda x, n: lax.sin(x) * n, static_argnums=1, tier="auto")
    np.testing.assert_allclose(f(X, 2), 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(vmap(lambda x: f(x, 3))(X), 3 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(grad(lambda x: f(x, 2))(1.0), 2 * np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(jit(lambda x: f(x, 2))(X), 2 * np.sin(X), rtol=1e-6)


def test_what_cannot_be_compiled_says_so() -> None:
    f = jit(lambda x: x + 1, tier="auto", compiler_options={"nope": 1})
    np.testing.assert_array_equal(f(X), X + 1)

    def refused() -> bool:
        try:
            np.testing.assert_array_equal(f(X), X + 1)
        except ValueError as error:
            return "XLA rejects compiler_options (nope=1)" in str(error)
        return False

    wait_for(refused)
    assert refused()


def test_errors_of_the_function_and_of_the_option() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jit(f, tier="auto")(X)
    with pytest.raises(ValueError, match="tier must be None, 'compiled' or 'auto', got 'fast'"):
        jit(f, tier="fast")


def test_changed_settings_are_another_program(gate: threading.Event) -> None:
    f = jit(lambda x: x + 1, tier="auto")
    with corejax.enable_x64():
        assert f(1).dtype == "int64"
    assert f(1).dtype == "int32"
    gate.set()
    wait_for(lambda: device_buffer(f(1)) is not None)  # a result of the program is on a device
    assert f(1).dtype == "int32"
    with corejax.enable_x64():
        assert f(1).dtype == "int64"


def test_a_process_ends_while_its_programs_are_compiled() -> None:
    program = """
import corejax
for i in range(20):
    print(float(corejax.jit(lambda x: corejax.lax.sin(x) * i, tier="auto")(0.0)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.0\n" * 20, "")


def test_setting_switches_it_on_for_a_whole_program(gate: threading.Event) -> None:
    runs: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, corejax.config.override(jit_tier="auto"):
        patch.setattr(jit_page, "run", lambda *args, run=jit_page.run: runs.append(args) or run(*args))
        f, waiting = jit(lambda x: lax.mul(x, X + 11)), jit(lambda x: lax.mul(x, X + 12), tier="compiled")
        np.testing.assert_array_equal(f(X), X * (X + 11))
        assert not runs
        waiting(X)
        assert len(runs) == 1, "the option overrides the setting"
        gate.set()
        wait_for(lambda: f(X) is not None and len(runs) > 1)
    with pytest.raises(ValueError, match="jit_tier is 'compiled' or 'auto', got 'fast'"):
        corejax.config.update("jit_tier", "fast")


def test_functions_that_were_jitted_before_the_setting_follow_it(gate: threading.Event) -> None:
    f = jit(lambda x: lax.mul(x, X + 13))
    runs: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, corejax.config.override(jit_tier="auto"):
        patch.setattr(jit_page, "run", lambda *args, run=jit_page.run: runs.append(args) or run(*args))
        np.testing.assert_array_equal(f(X), X * (X + 13))
        assert not runs
        gate.set()
        wait_for(lambda: f(X) is not None and bool(runs))


@pytest.mark.parametrize("kind", ["loop", "batch", "call"])
def test_eager_evaluation_ends_when_the_program_is_ready(gate: threading.Event, kind: str) -> None:
    """A thread opens the gate during the eager evaluation, which would take minutes."""

    def loop(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 100_000_000, lambda c: (c[0] + 1, lax.sin(c[1])), (0, x))[1]

    slow = {"loop": loop, "batch": vmap(loop), "call": lambda x: jit(loop)(lax.cos(x))}[kind]

    results: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit_page, "run", lambda *args: results.append("compiled") or [as_array(X)])
        threading.Timer(0.2, gate.set).start()
        started = time.monotonic()
        jit(slow, tier="auto")(X)
        assert time.monotonic() - started < 30
    assert results == ["compiled"]


def test_effects_happen_once_even_if_the_program_is_ready_first(gate: threading.Event) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        corejax.debug.callback(lambda x: (seen.append(x), gate.set(), time.sleep(0.5)), x)
        return lax.sin(x)

    jit(f, tier="auto")(X)
    assert len(seen) == 1
