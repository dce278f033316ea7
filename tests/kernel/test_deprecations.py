"""Names that are not in `corejax.extend`, and hooks whose arguments change."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import pluggy
import pytest

import corejax.extend as extend
from corejax.errors import CorejaxDeprecationWarning, PluginError
from corejax.extend import hookimpl
from corejax.plugins import _hooks, hookspecs


def test_names_that_never_were() -> None:
    with pytest.raises(AttributeError, match=r"module 'corejax.extend' has no attribute 'nonsense'"):
        extend.nonsense  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"module 'corejax.extend' has no attribute 'nonsense'"):
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
    with extend.plugins.isolated_plugins() as manager:
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
    with extend.plugins.isolated_plugins() as manager:
        record = manager.register(Renamed(), "old")
    assert isinstance(record.fault, PluginError)
    message = str(record.fault)
    assert message.startswith("Plugin 'old' for hook 'corejax_register_rules' ") and "{'registry'}" in message
    assert "\n" not in message, "`corejax plugins` shows the first line"


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
    assert extend.messages.CorejaxDeprecationWarning is CorejaxDeprecationWarning
