"""The surface of `corejax.extend` is frozen: what differs from the committed file is printed, with how to accept it."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corejax.rules import RuleRegistry
from tools import freeze_extend as tool

ROOT = Path(__file__).resolve().parents[2]
PLACES = ["corejax.extend", *(f"corejax.extend.{chapter}" for chapter in tool.chapters())]
GIVEN = (int, dict, list, type(None), RuleRegistry, ModuleType)


def test_surface_is_the_committed_one() -> None:
    """In a process of its own, where no plugin has added methods, settings or rule kinds."""
    command = [sys.executable, "tools/freeze_extend.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"corejax.extend is not as frozen:\n{done.stdout}{done.stderr}", pytrace=False)


@pytest.mark.parametrize("place", PLACES)
def test_table_of_contents_is_complete(place: str) -> None:
    module = import_module(place)
    public = {name for name in dir(module) if not name.startswith("_")} - {"annotations"}
    public -= {*tool.chapters(), "printing", "speed"} if place == "corejax.extend" else set()
    assert public == set(module.__all__), f"add the name to `__all__` of {place}"
    assert len(set(module.__all__)) == len(module.__all__)


@pytest.mark.parametrize("place", PLACES)
def test_every_name_has_a_docstring(place: str) -> None:
    things = {name: getattr(import_module(place), name) for name in import_module(place).__all__}
    assert not [n for n, thing in things.items() if not isinstance(thing, GIVEN) and not inspect.getdoc(thing)]


OLD = """\
# comment
API_VERSION = 1
class Box(value, *, strict=False): Base
Box.value
gone(x)
f(x, y=1)
hook corejax_do(kind)
rule kind jvp: required, flag symbolic_zeros
setting check
"""


def changed(*pairs: tuple[str, str]) -> list[str]:
    text = OLD
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return tool.differences(tool.read(OLD), tool.read(text))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Box.value\n", "Box.value\nBox.other(self)\n", "+ Box.other(self)"),
        ("f(x, y=1)", "f(x, y=1, *, z=2)", "~ f\n    was: f(x, y=1)\n    now: f(x, y=1, *, z=2)"),
        ("do(kind)", "do(kind, platform)", "~ hook corejax_do\n"),
        ("symbolic_zeros", "symbolic_zeros, flag late", "~ rule kind jvp\n"),
    ],
)
def test_compatible_changes_are_shown(old: str, new: str, words: str) -> None:
    found = "\n".join(changed((old, new)))
    assert words in found
    assert "BREAKS" not in found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gone(x)\n", ""),
        ("Box.value\n", ""),
        ("f(x, y=1)", "f(x)"),
        ("f(x, y=1)", "f(x, y)"),
        ("f(x, y=1)", "f(y=1, x=2)"),
        ("f(x, y=1)", "f(x, y=1, *, z)"),
        ("f(x, y=1)", "f(x, /, y=1)"),
        ("*, strict=False", "*, loose=False"),
        (": Base", ""),
        ("do(kind)", "do()"),
        (", flag symbolic_zeros", ""),
        ("setting check\n", ""),
        ("API_VERSION = 1", "API_VERSION = 2"),
    ],
)
def test_breaking_changes_are_marked(old: str, new: str) -> None:
    assert "BREAKS authors" in "\n".join(changed((old, new)))


def test_signatures_are_written_without_annotations_and_addresses() -> None:
    def example(x: int, /, y: Any = object(), *rest: Any, z: str = "a") -> None: ...  # noqa: B008

    assert tool.signature(example) == "(x, /, y=..., *rest, z='a')"


def test_rewriting_is_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREJAX_PLUGINS", "")  # the tool sets it
    monkeypatch.setattr(tool, "FILE", tmp_path / "surface.txt")
    monkeypatch.setattr(tool, "surface", lambda: tool.read(OLD))
    assert tool.main([]) == 0
    assert tool.read(tool.FILE.read_text()) == tool.read(OLD)
    monkeypatch.setattr(tool, "surface", lambda: tool.read(OLD.replace("f(x, y=1)", "f(x)")))
    assert tool.main(["--check"]) == 1


def test_plugins_do_not_reach_around_extend() -> None:
    """Import-linter sees imports; this sees `corejax.rules.x` after `import corejax`."""
    modules = [path for path in (ROOT / "corejax").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    rooms = {path.stem for path in modules if not path.name.startswith("_")} - {"extend", "array"}
    rooms -= {"config", "tree_util", "typing"}  # the facade's own, for users
    sources = [*ROOT.glob("plugins/*/src/**/*.py"), *ROOT.glob("examples/plugins/*/src/**/*.py")]
    assert len(sources) > 50
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: corejax.{node.attr}"
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "corejax"
        if node.attr in rooms
    ]
    assert not found, "take these from corejax.extend:\n" + "\n".join(found)
