"""`disable_most_optimizations`: the same results from machine code that is made faster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax_xla_backend import _jaxlib


def network(x: Any) -> Any:
    return jnp.tanh(x @ x.T).sum(0)


@pytest.fixture
def flags(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """XLA's flags of the programs that are compiled."""
    seen = []
    of = _jaxlib.compile_module

    def compile_module(*args: Any, **options: Any) -> Any:
        seen.append(dict(options["overrides"]))
        return of(*args, **options)

    monkeypatch.setattr(_jaxlib, "compile_module", compile_module)
    return seen


def test_results_are_the_same(flags: list[dict[str, Any]]) -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    gradient = lambda x: corejax.grad(lambda x: network(x).sum())(x)
    wanted = corejax.jit(gradient)(x)
    with corejax.config.override(disable_most_optimizations=True):
        got = corejax.jit(lambda x: gradient(x))(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    first, second = flags
    assert first == {}
    assert second["xla_backend_optimization_level"] == 0
    assert second["xla_llvm_disable_expensive_passes"] is True


def test_programs_that_are_there_stay(flags: list[dict[str, Any]]) -> None:
    f, x = corejax.jit(lambda x: network(x)), np.ones((2, 3), np.float32)
    f(x)
    with corejax.config.override(disable_most_optimizations=True):
        f(x)
        assert len(flags) == 1
        f(np.ones((5, 3), np.float32))
    assert [bool(given) for given in flags] == [False, True]


def test_options_of_a_function_come_first(flags: list[dict[str, Any]]) -> None:
    with corejax.config.override(disable_most_optimizations=True):
        corejax.jit(network, compiler_options={"xla_backend_optimization_level": 2})(np.ones((2, 3), np.float32))
    assert flags[0]["xla_backend_optimization_level"] == 2


def test_it_is_on_or_off() -> None:
    with pytest.raises(ValueError, match="disable_most_optimizations is on or off, got 'some'"):
        corejax.config.update("disable_most_optimizations", "some")


def test_an_unknown_switch_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases differ in what they can switch off."""
    from corejax_xla_backend._jaxlib import _quick

    monkeypatch.setattr(_quick, "_ON_CPUS", {"xla_no_such_switch": True})
    found = dict(_quick.quick_flags.__wrapped__(_jaxlib.client("cpu")))
    assert found == _quick.QUICK
