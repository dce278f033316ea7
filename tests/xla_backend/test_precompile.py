"""`precompile` and `compiling_together`: a program is compiled before the first call, which only runs it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax_xla_backend import _programs

pytest.importorskip("jaxlib")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Names of compiled programs and of the threads that compiled them."""
    seen: list[tuple[str, str]] = []
    own = _programs._compile

    def compile_and_note(closed: Any, name: str, *args: Any) -> Any:
        seen.append((name, threading.current_thread().name))
        return own(closed, name, *args)

    monkeypatch.setattr(_programs, "_compile", compile_and_note)
    return seen


def test_first_call_after_precompile_compiles_nothing(compilations: list[Any]) -> None:
    def precompiled(w: Any, x: Any, *, n: int) -> Any:
        return (w @ x["x"]) ** n

    f = corejax.jit(precompiled, static_argnames="n")
    types = {"x": corejax.ShapeDtypeStruct((3,), "float32")}
    assert corejax.precompile(f, jnp.ones((2, 3)), types, n=2) is None
    assert [name for name, _ in compilations] == ["precompiled"]
    np.testing.assert_array_equal(f(jnp.ones((2, 3)), {"x": jnp.ones(3)}, n=2), [9, 9])
    assert len(compilations) == 1
    f(jnp.ones((2, 3)), {"x": jnp.ones(3)}, n=3)
    assert len(compilations) == 2, "another static argument is another program"


def test_where_the_types_say_that_arguments_will_be(compilations: list[Any]) -> None:
    [device, *_] = corejax.devices()
    f = corejax.jit(lambda x: x * 3)
    sharding = corejax.sharding.SingleDeviceSharding(device)
    corejax.precompile(f, corejax.ShapeDtypeStruct((3,), "float32", sharding=sharding))
    f(corejax.device_put(jnp.ones(3), device))
    assert len(compilations) == 1


def test_block_compiles_in_threads_and_waits(compilations: list[Any]) -> None:
    fs = [corejax.jit(lambda x, k=k: jnp.sin(x) * k) for k in range(3)]
    with corejax.compiling_together():
        for f in fs:
            corejax.precompile(f, jnp.ones(5))
    assert len(compilations) == 3
    assert all(thread.startswith("corejax-precompile") for _, thread in compilations)
    for k, f in enumerate(fs):
        np.testing.assert_allclose(f(jnp.ones(5)), np.sin(np.ones(5)) * k, rtol=1e-6)
    assert len(compilations) == 3
    corejax.precompile(corejax.jit(jnp.cos), jnp.ones(5))
    assert compilations[-1][1] == threading.current_thread().name, "after the block, at once"


def test_error_of_a_compilation_is_raised_at_the_end_of_the_block() -> None:
    good, bad = corejax.jit(jnp.tanh), corejax.jit(lambda x: x + 4, compiler_options={"xla_no_such_flag": True})
    with pytest.raises(Exception, match="xla_no_such_flag"), corejax.compiling_together():
        corejax.precompile(bad, jnp.ones(2))
        corejax.precompile(good, jnp.ones(2))
    np.testing.assert_allclose(good(jnp.ones(2)), np.tanh(np.ones(2)), rtol=1e-6)


def test_error_of_the_block_drops_what_has_not_started() -> None:
    with pytest.raises(ZeroDivisionError), corejax.compiling_together():
        corejax.precompile(corejax.jit(jnp.tan), jnp.ones(2))
        raise ZeroDivisionError
    corejax.precompile(corejax.jit(jnp.tan), jnp.ones(2))


def test_function_that_is_not_jitted_is_refused() -> None:
    with pytest.raises(TypeError, match=r"precompile: expected a function that corejax.jit returned.*'sin'"):
        corejax.precompile(jnp.sin, jnp.ones(2))
    with pytest.raises(TypeError, match="argument x"):
        corejax.precompile(corejax.jit(lambda x: x), "text")
