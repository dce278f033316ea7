"""Reports show control characters of names and errors; nothing obeys them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from corejax.cli import main
from corejax.extend import Primitive
from corejax.extend.plugins import isolated_plugins
from corejax_testing.arrays import show
from corejax_testing.manifests.check import print_results
from corejax_testing.report import print_report
from corejax_testing.runner import FAILED, MISSING, Result

CLEAR = "\x1b[2J\x9b31m\u202e"


def test_reports_of_checks(capsys: pytest.CaptureFixture[str]) -> None:
    failed = Result("p" + CLEAR, "jvp", FAILED, "wrong" + CLEAR, call="f" + CLEAR, where="at" + CLEAR, note="n" + CLEAR)
    missing = Result("q", "vmap", MISSING, "no rule" + CLEAR)
    print_report([failed, missing], ["fault" + CLEAR], ["note" + CLEAR])
    print_results([failed])
    out = capsys.readouterr().out
    assert "\\x1b[2J\\x9b31m\\u202e" in out and not any(c in out for c in ("\x1b", "\x9b", "\u202e"))


def test_an_array_of_several_axes_is_one_line() -> None:
    assert show(np.ones((2, 2, 1), "float32")) == "float32[2, 2, 1] [[[1.], [1.]], [[1.], [1.]]]"


@pytest.mark.parametrize(
    "arguments", [["verify", "--quick"], ["verify", "--quick", "--json"], ["fuzz", "--programs", "1"]]
)
def test_commands(arguments: list[str]) -> None:
    name = "acme.x" + CLEAR
    with isolated_plugins():
        Primitive(name, impl=lambda x: x, abstract_eval=lambda a: a)
        given = [name] if arguments[0] == "verify" else ["--primitives", name]
    result = CliRunner().invoke(main, [*arguments, *given])
    assert not any(c in result.output for c in ("\x1b", "\x9b", "\u202e")), result.output
    assert result.output and (result.exception is None or isinstance(result.exception, SystemExit))
    if "--json" in arguments and result.exit_code != 2:
        json.loads(result.stdout)
