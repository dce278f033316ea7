"""A plugin object becomes hooks to call: pluggy registers and calls them; what it lets pass is refused here."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from typing import Any

import pluggy

from corejax.errors import PluginError
from corejax.plugins import hookspecs

HOOKS = tuple(name for name in dir(hookspecs) if name.startswith("corejax_"))


def hooks_of(plugin: Any, name: str) -> Any:
    """The hooks of one plugin, to be called as `hooks.corejax_register_rules(kind=kind)`.

    A call gives what the plugin's implementation returns, None where it has none. Each plugin has a pluggy manager
    of its own: one that raises takes nothing from the others, and whose answer it is needs no asking.

    Raises:
        PluginError: it was made for another API version, or has hooks that nobody would ever call.
    """
    if plugin is None:
        raise PluginError("a plugin is a module, or an object with hooks, got None")
    manager = pluggy.PluginManager("corejax")
    manager.register(plugin, name)
    callers = manager.get_hookcallers(plugin) or []
    if isinstance(plugin, type):
        _check_class(plugin, [each.function for caller in callers for each in caller.get_hookimpls()])
    for caller in callers:
        _check_implementations(caller.name, caller.get_hookimpls())
    _check_version(manager)  # before pluggy looks at arguments: another version's hooks may have others
    try:
        manager.add_hookspecs(hookspecs)
    except pluggy.PluginValidationError as error:
        raise PluginError(" ".join(str(error).split())) from None
    for caller in callers:
        if not caller.has_spec():
            raise PluginError(_no_such_hook(caller.name))
    _check_marks(plugin, manager)
    return manager.hook


def _check_class(plugin: type, functions: Sequence[Any]) -> None:
    """Refuse a class whose hooks are methods: nobody made the object that they want."""
    for function in functions:
        if inspect.isfunction(function) and next(iter(inspect.signature(function).parameters), "") == "self":
            raise PluginError(
                f"{plugin.__qualname__} is a class, and {function.__name__} wants an instance of it: let the entry "
                f"point name one (PLUGIN = {plugin.__name__}()), or a module with functions"
            )


def _check_implementations(hook: str, found: Sequence[Any]) -> None:
    """Refuse wrappers, and a second implementation of a hook: whatever it gives would be lost."""
    if any(each.wrapper or each.hookwrapper for each in found):
        raise PluginError(f"{hook} is declared as a wrapper; plugins answer for themselves only")
    if len(found) > 1:
        names = " and ".join(sorted(each.function.__name__ for each in found))
        raise PluginError(f"{hook} is implemented by {names}; one plugin has one implementation of a hook")


def _check_version(manager: pluggy.PluginManager) -> None:
    """Refuse a plugin that was made for another version of the plugin API: says which of the two to upgrade."""
    declare = getattr(manager.hook, "corejax_declare_api_version", list)
    [version] = declare() or [1]
    if type(version) is not int:
        raise PluginError(f"corejax_declare_api_version gives an int, this one gave {version!r}")
    if version != hookspecs.API_VERSION:
        advice = "upgrade corejax" if version > hookspecs.API_VERSION else "upgrade the plugin"
        raise PluginError(
            f"it was made for plugin API version {version}, this corejax has version {hookspecs.API_VERSION}; {advice}"
        )


def _check_marks(plugin: Any, manager: pluggy.PluginManager) -> None:
    """Refuse functions that are named like hooks without being marked, and a plugin without any hook."""
    for name in HOOKS:
        if inspect.isroutine(getattr(plugin, name, None)) and manager.parse_hookimpl_opts(plugin, name) is None:
            raise PluginError(f"{name} is not marked as a hook: put @corejax.extend.hookimpl above it")
    if not manager.get_hookcallers(plugin):
        raise PluginError(f"{plugin!r} has no hooks: mark functions named corejax_... with @hookimpl")


def _no_such_hook(name: str) -> str:
    close = difflib.get_close_matches(name, HOOKS, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(HOOKS)}"
    return f"there is no hook named {name}; {hint}"
