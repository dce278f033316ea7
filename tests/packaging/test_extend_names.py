"""Every name of `corejax.extend` and its chapters is used by a plugin, an example, a template or a page of docs/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import corejax.extend as extend

ROOT = Path(__file__).resolve().parents[2]
MODULES = [m.name for m in iter_modules(extend.__path__) if not m.name.startswith("_")]
CHAPTERS = "|".join(MODULES)
NAMES = [*extend.__all__, *(f"{m}.{n}" for m in MODULES for n in import_module(f"corejax.extend.{m}").__all__)]
PLACES = ["plugins/*/src/**/*.py", "examples/**/*.py", "docs/*.md", "plugins/*/README.md"]
PLACES += ["plugins/*/src/**/*.tmpl", "corejax/**/*.tmpl"]
DOOR = re.compile(
    rf"from corejax\.extend(?:\.\w+)? import (?:\(([^)]*)\)|([^\n]*))|\bextend\.(?:(?:{CHAPTERS})\.)?(\w+)"
)


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


@pytest.mark.parametrize("name", NAMES)
def test_name_has_a_user(name: str) -> None:
    used = name.rpartition(".")[2] in USED | DESCRIBED
    assert used, f"nothing uses corejax.extend.{name}: describe it in docs/recipes.md, or retire it"


def test_names_are_in_one_place() -> None:
    """Most authors need what is in `corejax.extend` itself, which stays short."""
    plain = [name.rpartition(".")[2] for name in NAMES]
    assert sorted(set(plain)) == sorted(plain)
    assert len(extend.__all__) <= 90


@pytest.mark.parametrize("module", ["corejax.extend", "corejax.extend.types"])
def test_a_name_of_another_chapter_is_told(module: str) -> None:
    words = rf"module '{module}' has no attribute 'Literal'; it is in corejax.extend.programs"
    with pytest.raises(AttributeError, match=words):
        import_module(module).Literal  # noqa: B018
    with pytest.raises(ImportError, match=words):
        exec(f"from {module} import Literal")


def test_names_are_imported_when_they_are_first_used() -> None:
    chapter = import_module("corejax.extend.programs")
    vars(chapter).pop("Literal", None)
    assert "Literal" in dir(chapter) and "Literal" not in vars(chapter)
    assert chapter.Literal is vars(chapter)["Literal"]
    namespace: dict[str, object] = {}
    exec("from corejax.extend.programs import *", namespace)
    assert set(chapter.__all__) <= namespace.keys()
