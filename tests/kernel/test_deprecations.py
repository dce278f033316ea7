"""Deprecated names, arguments and hook arguments: warned about for two minor versions, then refused by name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pluggy
import pytest

import corejax
import corejax.extend as extend
from corejax import deprecations
from corejax.deprecations import Deprecation, renamed_arguments
from corejax.errors import CorejaxDeprecationWarning, PluginError, RemovedArgumentError
from corejax.extend import hookimpl
from corejax.plugins import hooks, hookspecs

OLD_NAME = Deprecation("old_defjvp", "0.4", "corejax.extend.defjvp", target="corejax.interpreters.jvp_helpers:defjvp")
ENTRIES = [
    OLD_NAME,
    Deprecation("scale(by)", "0.4", "factor"),
    Deprecation("scale(unused)", "0.4"),
    Deprecation("corejax_register_rules(registry)", "0.4", "kind"),
]


@pytest.fixture
def version(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that sets the version of corejax; the table has the fake entries."""
    monkeypatch.setattr(deprecations, "TABLE", ENTRIES)

    def set_version(text: str) -> None:
        monkeypatch.setattr(deprecations, "current_version", lambda: text)

    set_version("0.4.0")
    return set_version


@renamed_arguments("scale")
def scale(x: float, *, factor: float = 1.0) -> float:
    """x times a factor."""
    return x * factor


# -- versions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "gone"),
    [("0.4.0", False), ("0.5.9", False), ("0.5.0.dev1+g0", False), ("0.6.0", True), ("0.10.0", True), ("1.0.0", True)],
)
def test_two_minor_versions(version: Any, now: str, gone: bool) -> None:
    version(now)
    assert OLD_NAME.gone is gone


def test_an_entry_may_live_longer(version: Any) -> None:
    version("1.0.0")
    assert not Deprecation("a", "0.9", "b", removed="1.1").gone
    assert minor_error("nonsense") == "not a version: 'nonsense'"


def minor_error(text: str) -> str:
    with pytest.raises(ValueError) as info:
        deprecations.minor_version(text)
    return str(info.value)


def test_real_table_is_sound() -> None:
    """Entries are named once, live two minor versions at least, and point to what exists."""
    assert deprecations.minor_version(deprecations.current_version())
    names = [entry.name for entry in deprecations.TABLE]
    assert len(names) == len(set(names))
    for entry in deprecations.TABLE:
        major, minor = deprecations.minor_version(entry.since)
        assert entry.removed_in >= (major, minor + 2) or entry.removed_in[0] > major
        assert entry.name not in extend.__all__
        if entry.target and not entry.gone:
            with pytest.warns(CorejaxDeprecationWarning):
                getattr(extend, entry.name)


# -- names ---------------------------------------------------------------------------------------------------------


def test_deprecated_name_still_works(version: Any) -> None:
    with pytest.warns(CorejaxDeprecationWarning) as caught:
        found = extend.old_defjvp  # type: ignore[attr-defined]
    assert found is extend.defjvp
    assert str(caught[0].message) == (
        "corejax.extend.old_defjvp is deprecated and will be removed in corejax 0.6; use corejax.extend.defjvp instead"
    )
    assert caught[0].filename == __file__  # the author's line


def test_deprecated_name_can_be_imported(version: Any) -> None:
    with pytest.warns(CorejaxDeprecationWarning) as caught:
        from corejax.extend import old_defjvp  # type: ignore[attr-defined]
    assert old_defjvp is extend.defjvp
    assert {w.filename for w in caught} == {__file__}


def test_removed_name_names_its_replacement(version: Any) -> None:
    version("0.6.0")
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


# -- arguments -----------------------------------------------------------------------------------------------------


def test_renamed_argument(version: Any) -> None:
    with pytest.warns(CorejaxDeprecationWarning, match=r"argument 'by' of scale .* use factor instead") as caught:
        assert scale(2.0, by=3.0) == 6.0  # type: ignore[call-arg]
    assert caught[0].filename == __file__
    with pytest.warns(CorejaxDeprecationWarning, match="argument 'unused' of scale .* leave it out"):
        assert scale(2.0, unused=1) == 2.0  # type: ignore[call-arg]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scale(2.0, factor=3.0) == 6.0
    with pytest.raises(TypeError, match="scale got 'by' and 'factor', which are the same argument; leave out 'by'"):
        scale(2.0, by=3.0, factor=3.0)  # type: ignore[call-arg]


def test_removed_argument(version: Any) -> None:
    version("0.7")
    with pytest.raises(RemovedArgumentError, match=r"argument 'by' of scale was removed in corejax 0.6; use factor"):
        scale(2.0, by=3.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        scale(2.0, other=1)  # type: ignore[call-arg]


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


@pytest.fixture
def hooks_with_old_argument(version: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Hook specifications in which `corejax_register_rules(kind)` was `(registry)`, as a release would have them."""

    def corejax_register_rules(kind: str, registry: str) -> None:
        """Import rules of a kind."""

    monkeypatch.setattr(hookspecs, "corejax_register_rules", hookspecs.hookspec(corejax_register_rules))
    yield hookspecs


def kinds_of(plugin: Old) -> list[Any]:
    with extend.isolated_plugins() as manager:
        manager.register(plugin, "old")
        manager.load_rules("jvp")
    return plugin.calls


def test_plugin_with_fewer_arguments_goes_on_working() -> None:
    assert kinds_of(Old()) == ["registered"]


def test_deprecated_hook_argument_gets_the_value_of_its_replacement(hooks_with_old_argument: Any) -> None:
    with pytest.warns(CorejaxDeprecationWarning, match=r"argument 'registry' of hook .* use kind instead") as caught:
        assert kinds_of(Renamed()) == ["jvp"]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kinds_of(Old()) == ["registered"]


def test_removed_hook_argument(version: Any) -> None:
    version("0.6")
    with extend.isolated_plugins() as manager:
        record = manager.register(Renamed(), "old")
    assert isinstance(record.fault, PluginError)
    assert "argument 'registry' of hook corejax_register_rules was removed in corejax 0.6; use kind" in str(
        record.fault
    )


def test_unknown_hook_argument_is_named() -> None:
    with extend.isolated_plugins() as manager:
        record = manager.register(Renamed(), "old")
    expected = "hook corejax_register_rules has no argument 'registry'; it takes any of kind"
    assert str(record.fault) == expected


class OldHook:
    """A plugin made when the hook had another name."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    @hookimpl
    def corejax_import_rules(self, kind: str) -> None:
        self.calls.append(kind)


def test_deprecated_hook_is_called_in_place_of_the_new_one(version: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def corejax_import_rules(kind: str) -> None:
        """Import rules of a kind."""

    entry = Deprecation("corejax_import_rules", "0.4", "corejax_register_rules")
    monkeypatch.setattr(deprecations, "TABLE", [entry])
    monkeypatch.setattr(hookspecs, "corejax_import_rules", hookspecs.hookspec(corejax_import_rules), raising=False)
    monkeypatch.setattr(hooks, "HOOKS", (*hooks.HOOKS, "corejax_import_rules"))
    plugin = OldHook()
    with pytest.warns(CorejaxDeprecationWarning, match="hook corejax_import_rules is .* use corejax_register_rules"):
        assert kinds_of(plugin) == ["jvp"]  # type: ignore[arg-type]


def test_removed_hook_names_its_replacement(version: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deprecations, "TABLE", [Deprecation("corejax_import_rules", "0.4", "corejax_register_rules")])
    version("0.6")
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
