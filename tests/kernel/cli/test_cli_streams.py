"""What the command writes, whatever plugins call themselves, and wherever it is written to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from corejax.base.texts import add_note, error_text, json_text, one_line, shown
from corejax.cli import main
from corejax.core.primitive import primitives
from corejax.plugins._plugin_manager import PluginManager
from tests.kernel.plugin_sites import Site

Run = Callable[..., Result]

SLY = r"""
import click
CLEAR = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e\ud800"
@hookimpl
def corejax_register_primitives():
    extend.Primitive("acme.x" + CLEAR, impl=lambda x: x, doc="Clears" + CLEAR + " the screen", tags=[CLEAR])
    p = extend.Primitive("acme.p", impl=lambda x: x, doc="Clears" + CLEAR + " the screen\nand says so")
    extend.vmap_rules.register(p, lambda n, vals, dims: (vals[0], dims[0]))
@hookimpl
def corejax_register_rules(kind):
    if kind == "transpose":
        raise ImportError("no lib" + CLEAR + "\nand more")
@hookimpl
def corejax_add_cli_commands(group):
    @group.command("acme-clear", help="Clears" + CLEAR)
    def clear(): pass
@hookimpl
def corejax_provide_examples(primitive):
    raise ValueError("none" + CLEAR)
"""
CONTROLS = ("\x1b", "\x07", "\x9b", "\u202e", "\ud800")


@pytest.fixture
def run(site: Site, fresh: PluginManager) -> Run:
    site.add("acme", SLY)
    site.add("broken", r"raise ImportError('no lib\x1b[2J')", version="1.0", distribution="corejax-broken")
    primitives.clear()  # `fresh` puts them back
    return lambda *arguments: CliRunner().invoke(main, arguments, prog_name="corejax")


@pytest.mark.parametrize(
    "arguments",
    [
        ["list-primitives"],
        ["list-primitives", "--plugin", "acme"],
        ["list-primitives", "--rule", "\x1b[2J"],
        ["plugins"],
        ["plugins", "--load"],
        ["--help"],
        ["no-such\x1b[2J"],
    ],
)
def test_escape_sequences_are_shown(arguments: list[str], run: Run) -> None:
    result = run(*arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert not any(c in result.output for c in CONTROLS), result.output
    assert result.output


@pytest.mark.parametrize("arguments", [["list-primitives"], ["plugins", "--load"]])
def test_json_is_json(arguments: list[str], run: Run) -> None:
    result = run(*arguments, "--json")
    assert not any(c in result.stdout for c in CONTROLS)
    assert "\x1b[2J" in json.dumps(json.loads(result.stdout), ensure_ascii=False).replace("\\u001b", "\x1b")


@pytest.mark.parametrize("name", ["", "-x", "two words", "UP", "x\x1b[2J"])
def test_a_commands_name_is_a_word(name: str, site: Site, fresh: PluginManager) -> None:
    site.add(
        "acme",
        "import click\n@hookimpl\ndef corejax_add_cli_commands(group):\n"
        f"  group.add_command(click.Command({name!r}), {name!r})",
    )
    result = CliRunner().invoke(main, ["no-such"])
    assert result.exit_code == 2 and "a command's name must be" in str(fresh.records["acme"].fault)


# -- streams -------------------------------------------------------------------------------------------------------

COMMAND = f"{sys.executable} -c 'from corejax.cli import main; main(prog_name=\"corejax\")'"
ENVIRONMENT = {**os.environ, "COREJAX_PLUGINS": "lax_basic"}


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line], env={**ENVIRONMENT, **environment}, capture_output=True, text=True, timeout=120
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a system without /dev/full")
@pytest.mark.parametrize("arguments", ["list-primitives", "plugins --json", "--help"])
def test_a_full_device_is_told_in_a_sentence(arguments: str) -> None:
    done = shell(f"{COMMAND} {arguments} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "corejax: cannot write to standard output: No space left on device\n"


def test_a_reader_that_has_gone() -> None:
    for unbuffered in ("1", ""):
        for reader in ("true", "head -1"):
            command = f"{COMMAND} list-primitives | {reader}; exit ${{PIPESTATUS[0]}}"
            done = shell(command, PYTHONUNBUFFERED=unbuffered)
            assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(closed: str) -> None:
    done = shell(f"{COMMAND} plugins {closed}")
    assert done.returncode == 0 and done.stderr == ""


def test_an_encoding_without_the_characters() -> None:
    done = shell(f"{COMMAND} list-primitives", PYTHONIOENCODING="ascii", COREJAX_RULE_OVERRIDES="-bücher")
    assert done.returncode == 0 and "b\\xfccher" in done.stderr


# -- texts ---------------------------------------------------------------------------------------------------------


def test_shown_keeps_what_is_printable() -> None:
    assert shown("f(x) → é ✓\n\tnext") == "f(x) → é ✓\n\tnext"
    assert shown("\x1b[2J\r\x7f\u2028") == "\\x1b[2J\\r\\x7f\\u2028"
    assert one_line("a\nb\tc") == "a\\nb\\tc"


def test_json_text_has_what_json_has() -> None:
    class Sly:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    value = {
        "a": [float("nan"), -float("inf"), 1.5, None, True],
        3: ("\x9b", "\U000e0001", "é\n"),
        "s": Sly(),
        "t": {1},
    }
    text = json_text(value)
    assert json.loads(text) == {
        "a": ["nan", "-inf", 1.5, None, True],
        "3": ["\x9b", "\U000e0001", "é\n"],
        "s": "<Sly>",
        "t": "{1}",
    }
    assert "\x9b" not in text and "\U000e0001" not in text


def test_errors_that_refuse_to_be_shown() -> None:
    class Sly(Exception):
        def __str__(self) -> str:
            raise SystemExit

        def add_note(self, note: str) -> None:
            raise GeneratorExit

    assert error_text(Sly()) == "Sly: (its message cannot be shown: SystemExit)"
    assert error_text(ValueError()) == "ValueError"
    add_note(Sly(), "a note")
