"""`debug_nans` and `debug_infs` on primitives; compiled programs are in tests/integration."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import debug_infs, debug_nans
from corejax.extend import Primitive, defcall, inlining, stage_closed
from corejax.extend.devices import check_values, checks_values
from corejax.interpreters import evaluation

log_p = Primitive("value_checks.log", impl=np.log, abstract_eval=lambda x: x)
two_p = Primitive("value_checks.two", multiple_results=True, impl=lambda x: [x, x / 0], abstract_eval=lambda x: [x, x])
note_p = Primitive(
    "value_checks.note", multiple_results=True, effects=("note",), impl=lambda x: NOTES.append(float(x)) or [],
    abstract_eval=lambda x: [],
)  # fmt: skip
call_p = Primitive("value_checks.call", multiple_results=True, tags=("higher_order",), decomposition=inlining("jaxpr"))
defcall(call_p, "jaxpr")
NOTES: list[float] = []
ONE = np.float32(1)


def noted_log(x: Any) -> list[Any]:
    note_p.bind(x)
    return [log_p.bind(x)]


def test_on_and_off() -> None:
    bottom = evaluation.bottom
    plain = bottom.process_primitive, bottom.run_program
    assert not checks_values() and np.isnan(log_p.bind(-ONE))
    with debug_nans():
        assert checks_values()
        assert log_p.bind(ONE) == 0
        with pytest.raises(
            FloatingPointError, match=r"invalid value \(nan\) encountered in value_checks.log, at .*test_"
        ):
            log_p.bind(-ONE)
        assert two_p.bind(ONE)[1] == np.inf
    with debug_infs(), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in value_checks.two"):
        two_p.bind(ONE)
    # The engine's layer is composed anew.
    assert [f.__qualname__ for f in (bottom.process_primitive, bottom.run_program)] == [f.__qualname__ for f in plain]


def test_of_a_program_the_equation_is_named_and_effects_happen_once() -> None:
    NOTES.clear()
    program = stage_closed(noted_log, [corejax.extend.get_aval(ONE)])
    with debug_nans(), pytest.raises(FloatingPointError, match=r"encountered in value_checks.log, at .*\(noted_log\)"):
        call_p.bind(-ONE, jaxpr=program)
    assert NOTES == [-1.0]
    with debug_nans():
        assert call_p.bind(ONE, jaxpr=program) == [0.0]
    assert NOTES == [-1.0, 1.0]


def test_results_that_somebody_else_computed() -> None:
    program = stage_closed(noted_log, [corejax.extend.get_aval(ONE)])
    nan, params = corejax.extend.as_array(np.float32(np.nan)), {"jaxpr": program}
    check_values(call_p, [-ONE], params, [nan])
    with debug_nans():
        check_values(call_p, [ONE], params, [corejax.extend.as_array(ONE)])
        with pytest.raises(FloatingPointError, match=r"in value_checks.log"):
            check_values(call_p, [-ONE], params, [nan])
        with pytest.raises(FloatingPointError, match=r"value_checks.call.*one by one, make none"):
            check_values(call_p, [ONE], params, [nan])
        with pytest.raises(FloatingPointError, match=r"evaluated again, and failed"):
            check_values(call_p, [], params, [nan])


WITHOUT_PLUGIN = """
import corejax
for name in ("debug_nans", "debug_infs", "check_tracer_leaks"):
    try:
        corejax.config.update(name, True)
    except corejax.errors.PluginMissingError as error:
        assert "corejax-explain" in str(error), error
    else:
        raise AssertionError(name)
    assert getattr(corejax.config, name) is False
"""


def test_without_the_plugin_a_setting_says_what_to_install() -> None:
    environment = {**os.environ, "COREJAX_PLUGINS": "-explain"}
    subprocess.run([sys.executable, "-c", WITHOUT_PLUGIN], check=True, env=environment)
    environment["COREJAX_DEBUG_NANS"] = "1"
    run = subprocess.run([sys.executable, "-c", "import corejax"], capture_output=True, text=True, env=environment)
    assert "corejax-explain" in run.stderr
