"""Names that leave `corejax.extend`, and hooks that are gone: the replacement is named."""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

import pluggy
import pytest

import corejax
import corejax.extend as extend
from corejax.deprecations import TABLE, Deprecation
from corejax.errors import CorejaxDeprecationWarning, PluginError
from corejax.extend import hookimpl
from corejax.plugins import _hooks, hookspecs

DEPRECATED = Deprecation("corejax.extend.defjvp", removed="0.6", target="corejax.interpreters.jvp_helpers:defjvp")
REMOVED = Deprecation("corejax.extend.defjvp", removed="0.6")


@pytest.fixture
def deprecated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "old_defjvp", DEPRECATED)


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "old_defjvp", REMOVED)


def test_real_table_is_sound() -> None:
    """Names that are gone from `corejax.extend` and the hooks; a target is where an object is."""
    assert not TABLE.keys() & {*extend.__all__, *_hooks.HOOKS}
    for name, entry in TABLE.items():
        module, _, attribute = entry.target.partition(":")
        assert not module or hasattr(importlib.import_module(module), attribute), name


# -- names ---------------------------------------------------------------------------------------------------------


def test_deprecated_name_still_works(deprecated: None) -> None:
    with pytest.warns(CorejaxDeprecationWarning) as caught:
        found = extend.old_defjvp  # type: ignore[attr-defined]
    assert found is extend.defjvp
    assert str(caught[0].message) == (
        "corejax.extend.old_defjvp is deprecated and will be removed in corejax 0.6; use corejax.extend.defjvp instead"
    )
    assert caught[0].filename == __file__  # the author's line


def test_deprecated_name_can_be_imported(deprecated: None) -> None:
    with pytest.warns(CorejaxDeprecationWarning) as caught:
        from corejax.extend import old_defjvp  # type: ignore[attr-defined]
    assert old_defjvp is extend.defjvp
    assert {w.filename for w in caught} == {__file__}


def test_removed_name_names_its_replacement(removed: None) -> None:
    words = r"corejax.extend.old_defjvp was removed in corejax 0.6; use corejax.extend.defjvp instead"
    with pytest.raises(AttributeError, match=words):
        extend.old_defjvp  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=words):
        from corejax.extend import old_defjvp  # type: ignore[attr-defined]  # noqa: F401
    assert not hasattr(extend, "old_defjvp")


def test_names_that_never_were() -> None:
    with pytest.raises(AttributeError, match=r"module 'corejax.extend' has no attribute 'nonsense'"):
        extend.nonsense  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"cannot import name 'nonsense' from 'corejax.extend'"):
        from corejax.extend import nonsense  # type: ignore[attr-defined]  # noqa: F401


# -- hooks ---------------------------------------------------------------------------------------------------------


class Old:
    """A plugin made when there were fewer arguments."""

    calls: list[Any]

    def __init__(self) -> None:
        self.calls = []

    @hookimpl
    def corejax_register_rules(self) -> None:
        self.calls.append("registered")


class Renamed(Old):
    """A plugin made when the argument had another name."""

    @hookimpl
    def corejax_register_rules(self, registry: str) -> None:  # type: ignore[override]
        self.calls.append(registry)


def kinds_of(plugin: Old) -> list[Any]:
    with extend.isolated_plugins() as manager:
        manager.register(plugin, "old")
        manager.load_rules("jvp")
    return plugin.calls


def test_plugin_with_fewer_arguments_goes_on_working() -> None:
    assert kinds_of(Old()) == ["registered"]


def test_deprecated_hook_argument_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a release would have it in which `corejax_register_rules(kind)` was `(registry)`."""

    def corejax_register_rules(kind: str, registry: str) -> None:
        """Import rules of a kind."""

    warning = CorejaxDeprecationWarning("argument 'registry' of hook corejax_register_rules; use kind instead")
    spec = hookspecs.hookspec(firstresult=True, warn_on_impl_args={"registry": warning})(corejax_register_rules)
    monkeypatch.setattr(hookspecs, "corejax_register_rules", spec)
    plugin = Renamed()
    with pytest.warns(CorejaxDeprecationWarning, match=r"argument 'registry' of hook .* use kind instead") as caught:
        hooks = _hooks.hooks_of(plugin, "old")
    assert caught[0].filename == __file__
    hooks.corejax_register_rules(kind="jvp", registry="jvp")
    assert plugin.calls == ["jvp"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _hooks.hooks_of(Old(), "old")


def test_unknown_hook_argument_is_named() -> None:
    with extend.isolated_plugins() as manager:
        record = manager.register(Renamed(), "old")
    assert isinstance(record.fault, PluginError)
    message = str(record.fault)
    assert message.startswith("Plugin 'old' for hook 'corejax_register_rules' ") and "{'registry'}" in message
    assert "\n" not in message, "`corejax plugins` shows the first line"


class OldHook:
    """A plugin made when the hook had another name."""

    @hookimpl
    def corejax_import_rules(self, kind: str) -> None: ...


def test_removed_hook_names_its_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "corejax_import_rules", Deprecation("corejax_register_rules", removed="0.6"))
    with extend.isolated_plugins() as manager:
        record = manager.register(OldHook(), "old")
    expected = "hook corejax_import_rules was removed in corejax 0.6; use corejax_register_rules instead"
    assert str(record.fault) == expected


def test_the_command_shows_deprecations(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from corejax.cli import main

    monkeypatch.setattr(sys, "warnoptions", [])
    with warnings.catch_warnings():
        assert CliRunner().invoke(main, ["plugins"]).exit_code == 0
        assert ("default", CorejaxDeprecationWarning) in [(f[0], f[2]) for f in warnings.filters]


def test_pluggy_lets_specifications_grow() -> None:
    """What the kernel relies on: an implementation takes any subset of a specification's arguments."""
    spec, impl = pluggy.HookspecMarker("p"), pluggy.HookimplMarker("p")

    class Specs:
        @spec
        def corejax_do(self, kind: str, platform: str) -> None: ...

    class Plugin:
        @impl
        def corejax_do(self, kind: str) -> str:
            return kind

    manager = pluggy.PluginManager("p")
    manager.add_hookspecs(Specs)
    manager.register(Plugin())
    assert manager.hook.corejax_do(kind="jvp", platform="cpu") == ["jvp"]


def test_warning_class_is_what_test_runners_show() -> None:
    assert issubclass(CorejaxDeprecationWarning, DeprecationWarning)
    assert extend.CorejaxDeprecationWarning is CorejaxDeprecationWarning
    assert corejax.errors.RemovedNameError.__mro__[1] is corejax.errors.CorejaxError
    assert "corejax.deprecations" in sys.modules
