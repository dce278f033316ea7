"""The command: what it prints for eyes, pipes and scripts, its exit codes, what it imports, how long it takes."""

# ruff: noqa: E501 (a table as it is printed)

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from corejax import plugins
from corejax.cli import main, output
from corejax.core.primitive import Primitive, primitives
from corejax.plugins._plugin_manager import PluginManager
from corejax.settings.config import config
from tests.kernel.plugin_sites import Site

Run = Callable[..., Result]

# A program that runs the command with the arguments that it was given.
COMMAND = "import sys; from corejax.cli import main; main(prog_name='corejax')"


@pytest.fixture
def run(fresh: PluginManager) -> Run:
    """Runs the command in this process, with the toy primitives only."""
    primitives.clear()  # `fresh` puts them back

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(main, arguments, prog_name="corejax")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def toy(site: Site, run: Run) -> Run:
    """The command, with the plugin of tests/distributions/toy_ops."""
    site.install("toy_ops")
    return run


# -- list-primitives -----------------------------------------------------------------------------------------------

TABLE = """\
primitive      plugin   impl  abstract_eval  jvp  vmap  transpose  partial_eval  partial_eval_jaxpr  xla_translation  toy_cost
toy_ops.bare   toy_ops  ✓     ·              ·    ·     –          –             –                   p                –
toy_ops.scale  toy_ops  ✓     ✓              ✓    ✓     ✓          –             –                   ✓                ✓
toy_ops.twice  toy_ops  d     d              d    d     d          –             –                   ·                –
# ✓ own rule   p own rule on some platforms only   d derived by the kernel   · missing   – none, and none required
# 3 primitives from 1 plugin; rules: 9 own, 5 derived (5 by decomposition), 4 missing (abstract_eval of toy_ops.bare, jvp of toy_ops.bare, vmap of toy_ops.bare, xla_translation of toy_ops.twice)
"""


@pytest.mark.engine
def test_plain_table(toy: Run) -> None:
    result = toy("list-primitives")
    assert (result.stdout, result.stderr, result.exit_code) == (TABLE, "", 0)


def names(result: Result) -> list[str]:
    lines = [line for line in result.stdout.splitlines() if not line.startswith("#")]
    return [line.split()[0].removeprefix("toy_ops.") for line in lines[1:]]


@pytest.mark.parametrize(
    ("options", "found", "code"),
    [
        ("--rule jvp", ["scale", "twice"], 0),
        ("--rule xla-translation", ["bare", "scale"], 0),
        ("--rule toy_cost --rule jvp", ["scale"], 0),
        ("--missing jvp", ["bare"], 1),
        ("--missing xla_translation", ["twice"], 1),
        ("--missing transpose", ["bare"], 1),
        ("--missing impl", [], 0),
        ("--plugin toy_ops --missing vmap", ["bare"], 1),
        ("--rule impl --missing vmap", ["bare"], 1),
    ],
)
def test_filters(options: str, found: list[str], code: int, toy: Run) -> None:
    result = toy("list-primitives", *options.split())
    assert (names(result), result.exit_code) == (found, code)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--plugin toy_opps", "--plugin: there is no plugin named 'toy_opps'; did you mean 'toy_ops'?"),
        ("--rule jpv", "--rule: there is no rule kind named 'jpv'; did you mean 'jvp'?"),
        ("--missing q", "--missing: there is no rule kind named 'q'; there are abstract_eval, impl, jvp,"),
        ("--colour", "No such option"),
    ],
)
def test_wrong_usage(options: str, message: str, toy: Run) -> None:
    result = toy("list-primitives", *options.split())
    assert result.exit_code == 2 and message in result.stderr and result.stdout == ""


def test_json(toy: Run) -> None:
    result = toy("list-primitives", "--json", "--missing", "jvp")
    found = json.loads(result.stdout)
    [bare] = found["primitives"]
    assert result.exit_code == 1
    assert (bare["name"], bare["plugin"], bare["version"]) == ("toy_ops.bare", "toy_ops", "1.2.3")
    assert Path(bare["file"]).name == "ops.py" and bare["line"] > 1
    assert bare["rules"]["impl"] == "own" and bare["rules"]["xla_translation"] == "platform"
    assert bare["rules"]["transpose"] == "not_required"
    assert found["rule_kinds"][-1] == "toy_cost"
    assert found["totals"]["jvp"] == {"own": 0, "platform": 0, "derived": 0, "missing": 1, "not_required": 0}
    assert found["problems"] == []


def test_primitive_of_no_plugin_shows_its_module(run: Run) -> None:
    Primitive("mine")
    result = run("list-primitives")
    assert f"mine       ({__name__})" in result.stdout
    assert "1 primitive from 1 plugin" not in result.stdout and "1 primitive from no plugin" in result.stdout


def test_strict_rules_show_derived_ones_as_missing(toy: Run) -> None:
    with config.override(strict_rules=True):
        assert names(toy("list-primitives", "--missing", "jvp")) == ["bare", "twice"]


def test_table_on_a_terminal(toy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    result = toy("list-primitives")
    lines = result.stdout.splitlines()
    assert lines[2].split()[:5] == ["primitive", "plugin", "impl", "eval", "jvp"]
    assert any(line.split() == ["toy_ops.twice", "toy_ops", *"ddddd", "–", "–", "·", "–"] for line in lines)
    assert "3 primitives from 1 plugin" in " ".join(lines[-3:])
    monkeypatch.setenv("COLUMNS", "60")
    lines = toy("list-primitives").stdout.splitlines()
    assert lines[0].split() == ["primitive", "plugin", "abcdefghi"]
    assert any(line.split() == ["toy_ops.twice", "toy_ops", "ddddd––·–"] for line in lines)
    assert "a=impl   b=abstract_eval   c=jvp" in " ".join(lines) and max(map(len, lines)) <= 60
    monkeypatch.setenv("COLUMNS", "25")
    assert "toy_ops.twice" in toy("list-primitives").stdout.splitlines()


def test_ascii_marks_where_the_encoding_has_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert [output.printable(each) for each in "✓d·–"] == ["x", "d", ".", "-"]


@pytest.mark.engine
def test_failed_plugin_is_one_line_on_stderr(site: Site, toy: Run) -> None:
    site.install("broken_ops")
    result = toy("list-primitives")
    assert result.stdout == TABLE and result.exit_code == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("corejax: plugin 'broken_ops' (corejax-broken-ops 0.9) failed: RuntimeError: broken_ops")
    assert line.endswith("or switch it off (COREJAX_PLUGINS=-broken_ops).")
    assert toy("list-primitives", "--plugin", "broken_ops").exit_code == 1


def test_misspelt_selection_is_reported(toy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREJAX_PLUGINS", "toy_op")
    result = toy("list-primitives")
    assert "names 'toy_op', which is not an installed plugin; did you mean 'toy_ops'?" in result.stderr


# -- plugins -------------------------------------------------------------------------------------------------------


def test_plugins(site: Site, toy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    site.install("broken_ops")
    site.add("acme", "raise AssertionError('imported')")
    monkeypatch.setenv("COREJAX_PLUGINS", "-acme")
    result = toy("plugins")
    assert result.stdout == (
        "name        distribution        version  status  manifest  primitives\n"
        "acme        corejax-acme        1.0      off     none      –\n"
        "broken_ops  corejax-broken-ops  0.9      failed  none      –\n"
        "toy_ops     corejax-toy-ops     1.2.3    loaded  none      3\n"
        "# broken_ops: RuntimeError: broken_ops needs its accelerator library <- "
        "ModuleNotFoundError: No module named 'a_module_that_nobody_has'\n"
        "# no plugin has an engine: eager calls take two to twenty times as long; install corejax-eager "
        "(pip install corejax-eager)\n"
    )
    assert result.exit_code == 1
    assert not site.is_imported("acme")


def test_plugins_as_json(toy: Run) -> None:
    result = toy("plugins", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "format": "corejax-plugins",
        "version": 1,
        "plugins": [
            {
                "name": "toy_ops",
                "distribution": "corejax-toy-ops",
                "version": "1.2.3",
                "status": "loaded",
                "manifest": "none",
                "manifest_problem": "none",
                "primitives": 3,
                "backends": [],
                "entry_point": "corejax_toy.plugin",
                "causes": [],
            }
        ],
    }


def test_plugins_without_loading_them(site: Site, run: Run) -> None:
    site.add("acme", "raise AssertionError('imported')")
    result = run("plugins", "--no-load")
    assert "acme  corejax-acme  1.0      found   none      –" in result.stdout and result.exit_code == 0


def test_rules_that_cannot_be_loaded_are_a_fault(site: Site, run: Run) -> None:
    site.add(
        "acme", "@hookimpl\ndef corejax_register_rules(kind):\n    if kind == 'jvp': raise ImportError('no libacme')"
    )
    result = run("plugins")
    assert "# acme: jvp rules: ImportError: no lib" in result.stdout
    assert result.exit_code == 1


def test_no_plugins(run: Run) -> None:
    result = run("plugins")
    assert "no plugin is installed; try: pip install" in result.stdout and result.exit_code == 0
    result = run("list-primitives")
    assert "# 0 primitives from no plugin" in result.stdout and result.exit_code == 0


# -- the command itself --------------------------------------------------------------------------------------------


def test_commands_of_plugins(toy: Run) -> None:
    result = toy("toy-hello")
    assert (result.stdout, result.exit_code) == ("hello from toy_ops\n", 0)
    text = toy("--help").stdout
    assert "toy-hello" in text and "Exit codes" in text and "COREJAX_PLUGINS" in text
    assert toy("no-such").exit_code == 2


@pytest.mark.parametrize(
    ("mistyped", "meant"), [("lsit", "list-primitives"), ("plugin", "plugins"), ("toy-helo", "toy-hello")]
)
def test_a_mistyped_command_gets_a_suggestion(mistyped: str, meant: str, toy: Run) -> None:
    result = toy(mistyped)
    assert result.exit_code == 2
    assert f"No such command {mistyped!r}; did you mean {meant!r}?" in result.stderr


def test_command_that_exists_is_refused(site: Site, toy: Run, fresh: PluginManager) -> None:
    for name, command in (("acme", "plugins"), ("zacme", "toy-hello")):
        site.add(
            name,
            f"""
            import click

            @hookimpl
            def corejax_add_cli_commands(group):
                @group.command("{name}-extra")
                def extra(): pass

                @group.command({command!r})
                def command(): pass
            """,
        )
    text = toy("--help").stdout
    assert "acme-extra" not in text
    message = str(fresh.records["acme"].fault)
    assert message.startswith("the command 'plugins' is from the kernel (plugins.py:") and "plugin acme 1.0" in message
    message = str(fresh.records["zacme"].fault)
    assert "plugin toy_ops 1.2.3 (cli.py:" in message and "plugin zacme 1.0" in message


def test_strict_plugins_are_an_error_message(site: Site, run: Run) -> None:
    site.install("broken_ops")
    with config.override(strict_plugins=True):
        result = run("list-primitives")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: PluginError: plugin 'broken_ops' (corejax-broken-ops 0.9) failed to load:")


def test_every_command_documents_its_exit_codes() -> None:
    for command in main.commands.values():
        assert "Exit codes:" in (command.help or "")
    assert isinstance(main, click.Group)


def test_help_and_builtin_commands_do_not_run_plugin_commands(site: Site, toy: Run, fresh: PluginManager) -> None:
    site.add("acme", "@hookimpl\ndef corejax_add_cli_commands(group): raise ZeroDivisionError")
    assert toy("list-primitives").exit_code == 0
    assert fresh.records["acme"].status == "loaded"


# -- processes -----------------------------------------------------------------------------------------------------


def test_listing_imports_neither_jaxlib_nor_rich(site: Site) -> None:
    site.install("toy_ops")
    done = site.run(
        """
        import sys
        from corejax.cli import main
        main(["list-primitives"], standalone_mode=False)
        unwanted = {name.partition(".")[0] for name in sys.modules} & {"jax", "jaxlib", "rich", "pygments", "pytest"}
        assert not unwanted, unwanted
        """
    )
    assert (done.stdout, done.stderr) == (TABLE, "")


def test_version_and_exit_codes_of_a_process(site: Site) -> None:
    import importlib.metadata

    site.install("toy_ops")
    done = site.run(COMMAND, "--version")
    assert (done.stdout, done.returncode) == (f"corejax {importlib.metadata.version('corejax')}\n", 0)
    done = site.run(COMMAND, "list-primitives", "--missing", "jvp")
    assert (len(done.stdout.splitlines()), done.returncode, done.stderr) == (4, 1, "")
    assert site.run(COMMAND, "list-primitives", "--missing", "vjp").returncode == 2


def test_output_in_ascii(site: Site) -> None:
    site.install("toy_ops")
    done = site.run(COMMAND, "list-primitives", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "toy_ops.twice  toy_ops  d     d" in done.stdout and "x own rule" in done.stdout


def _installed() -> Any:
    records = PluginManager().discover()
    return [record for record in records.values() if (record.distribution or "").startswith("corejax-")]


@pytest.mark.skipif(not _installed(), reason="no first-party plugin is installed")
def test_listing_the_installed_plugins_needs_no_jaxlib() -> None:
    import subprocess
    import sys

    program = (
        "import sys\nfrom corejax.cli import main\nmain(['list-primitives'], standalone_mode=False)\n"
        "assert not {'jax', 'jaxlib'} & set(sys.modules), 'imported'"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert plugins.manager() is not None
