"""Every name of `corejax.extend` has a user: a plugin, an example, a template, or a page of docs/ that speaks of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import corejax.extend as extend

ROOT = Path(__file__).resolve().parents[2]
PLACES = ["plugins/*/src/**/*.py", "examples/**/*.py", "docs/*.md", "plugins/*/README.md"]
PLACES += ["plugins/*/src/**/*.tmpl", "corejax/**/*.tmpl"]
DOOR = re.compile(r"from corejax\.extend import (?:\(([^)]*)\)|([^\n]*))|\bextend\.(\w+)")


def names_in(text: str) -> Iterator[str]:
    """Names that a text takes from `corejax.extend`."""
    for several, line, one in DOOR.findall(text):
        imported = re.sub(r"#.*", "", several or line)
        yield from [one] if one else re.findall(r"(\w+)(?: as \w+)?", imported)


FILES = [path for place in PLACES for path in ROOT.glob(place)]
USED = {name for path in FILES for name in names_in(path.read_text(encoding="utf-8"))}
CODE_IN_TEXT = [code for page in ROOT.glob("docs/*.md") for code in re.findall(r"`([^`\n]+)`", page.read_text("utf-8"))]
DESCRIBED = {word for code in CODE_IN_TEXT for word in re.findall(r"\w+", code)}


def test_there_is_something_to_look_at() -> None:
    assert {path.suffix for path in FILES} == {".py", ".md", ".tmpl"}
    text = "from corejax.extend import a, b as c  # d\nfrom corejax.extend import (\n e,\n)\nextend.f()"
    assert list(names_in(text)) == ["a", "b", "e", "f"]


@pytest.mark.parametrize("name", extend.__all__)
def test_name_has_a_user(name: str) -> None:
    assert name in USED | DESCRIBED, f"nobody uses corejax.extend.{name}: describe it in docs/recipes.md, or retire it"
