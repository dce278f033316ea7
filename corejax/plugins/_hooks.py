"""Turn a plugin object into hooks to call. Pluggy registers and calls them; mistakes that it ignores raise here."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pluggy

from corejax.base.texts import closest
from corejax.errors import PluginError
from corejax.plugins import hookspecs

HOOKS = tuple(name for name in dir(hookspecs) if name.startswith("corejax_"))


def hooks_of(plugin: object, name: str) -> Any:
    """Return the hooks of one plugin, to be called as `hooks.corejax_register_rules(kind=kind)`.

    A call returns the result of the plugin's implementation, or None if it has none. Each plugin has its own pluggy
    manager, so a plugin that raises does not affect the others, and each result belongs to a known plugin.

    Raises:
        PluginError: the plugin was made for another API version, or has hooks that would never be called.
    """
    if plugin is None:
        raise PluginError("a plugin must be a module, or an object with hooks, got None")
    manager = pluggy.PluginManager("corejax")
    manager.register(plugin, name)
    callers = manager.get_hookcallers(plugin) or []
    if isinstance(plugin, type):
        _check_class(plugin, [each.function for caller in callers for each in caller.get_hookimpls()])
    for caller in callers:
        _check_implementations(caller.name, caller.get_hookimpls())
    _check_version(manager)  # before pluggy checks arguments: hooks of another API version may have different ones
    try:
        manager.add_hookspecs(hookspecs)
    except pluggy.PluginValidationError as error:
        raise PluginError(" ".join(str(error).split())) from None
    for caller in callers:
        if not caller.has_spec():
            close = closest(caller.name, HOOKS)
            advice = f"did you mean {close}?" if close else f"there are {', '.join(HOOKS)}"
            raise PluginError(f"there is no hook named {caller.name}; {advice}")
    _check_marks(plugin, manager)
    return manager.hook


def _check_class(plugin: type, functions: Sequence[object]) -> None:
    """Raise PluginError if a plugin is a class with hooks that are methods; they need an instance."""
    for function in functions:
        if inspect.isfunction(function) and next(iter(inspect.signature(function).parameters), "") == "self":
            raise PluginError(
                f"{plugin.__qualname__} is a class, and {function.__name__} needs an instance of it: let the entry "
                f"point name one (PLUGIN = {plugin.__name__}()), or a module with functions"
            )


def _check_implementations(hook: str, implementations: Sequence[Any]) -> None:
    """Raise PluginError if a hook is a wrapper or has two implementations; one of two results would be lost."""
    if any(each.wrapper or each.hookwrapper for each in implementations):
        raise PluginError(f"{hook} is declared as a wrapper; a plugin cannot wrap the hooks of other plugins")
    if len(implementations) > 1:
        names = " and ".join(sorted(each.function.__name__ for each in implementations))
        raise PluginError(f"{hook} is implemented by {names}; a plugin may implement a hook only once")


def _check_version(manager: pluggy.PluginManager) -> None:
    """Raise PluginError if a plugin was made for another plugin API version; it tells which one to upgrade."""
    declare = getattr(manager.hook, "corejax_declare_api_version", list)
    [version] = declare() or [1]
    if type(version) is not int:
        raise PluginError(f"corejax_declare_api_version must return an int, this one returned {version!r}")
    if version != hookspecs.API_VERSION:
        advice = "upgrade corejax" if version > hookspecs.API_VERSION else "upgrade the plugin"
        made = f"it was made for plugin API version {version}"
        raise PluginError(f"{made}, this corejax has version {hookspecs.API_VERSION}; {advice}")


def _check_marks(plugin: object, manager: pluggy.PluginManager) -> None:
    """Raise PluginError if a function has a hook's name but no `hookimpl` mark, or if there are no hooks."""
    for name in HOOKS:
        if inspect.isroutine(getattr(plugin, name, None)) and manager.parse_hookimpl_opts(plugin, name) is None:
            raise PluginError(f"{name} is not marked as a hook: put @corejax.extend.hookimpl above it")
    if not manager.get_hookcallers(plugin):
        raise PluginError(f"{plugin!r} has no hooks: mark functions named corejax_... with @hookimpl")
