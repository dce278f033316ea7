"""The reference pages leave nothing out."""

from __future__ import annotations

import inspect
import pathlib
import re

import pytest

from corejax import extend, plugins
from corejax.plugins import hookspecs
from corejax.settings.config import _SETTINGS as KERNEL_SETTINGS

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
HOOKS = [name for name in dir(hookspecs) if name.startswith("corejax_")]
REGISTRIES = [name for name in extend.__all__ if isinstance(getattr(extend, name), extend.RuleRegistry)]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_described_with_its_arguments(hook: str) -> None:
    arguments = ", ".join(inspect.signature(getattr(hookspecs, hook)).parameters)
    assert f"`{hook}({arguments})`" in (DOCS / "hooks.md").read_text()


@pytest.mark.parametrize("registry", REGISTRIES)
def test_every_registry_is_described(registry: str) -> None:
    assert f"`{registry}`" in (DOCS / "rules.md").read_text()


def test_settings_are_described_with_their_defaults() -> None:
    shown = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", (DOCS / "settings.md").read_text(), re.MULTILINE))
    defaults = {name: repr(default) for name, (default, *_) in KERNEL_SETTINGS.items()}
    for record in plugins.plugins():
        declared = record.hook.corejax_declare_settings() or {} if record.at_home and record.hook is not None else {}
        defaults |= {name: repr(default) for name, (default, *_) in declared.items()}
    assert shown == defaults


def test_every_page_is_reached_from_the_front_door() -> None:
    def linked(page: pathlib.Path) -> set[pathlib.Path]:
        targets = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text())
        found = {(page.parent / target).resolve() for target in targets}
        return {target for target in found if target.parent != DOCS / "reference"}  # written when the site is built

    seen: set[pathlib.Path] = set()
    waiting = {DOCS.parent / "README.md"}
    while waiting:
        page = waiting.pop()
        seen.add(page)
        found = linked(page)
        missing = [target.name for target in found if not target.exists()]
        assert not missing, f"{page.name} links to {missing}, which do not exist"
        waiting |= found - seen
    assert not set(DOCS.rglob("*.md")) - seen
