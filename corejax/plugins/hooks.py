"""Reading a plugin object: the version that it was made for, and whether its hooks are what they should be."""

from __future__ import annotations

import difflib
import inspect
import keyword
import re
from collections.abc import Mapping
from typing import Any

import pluggy

from corejax.deprecations import arguments_of, find
from corejax.errors import PluginError
from corejax.plugins import hookspecs

HOOKS = tuple(name for name in dir(hookspecs) if name.startswith("corejax_"))


def check_version(plugin: Any) -> None:
    """Refuse a plugin that was made for another version of the plugin API.

    Raises:
        PluginError: saying which of the two to upgrade.
    """
    declare = getattr(plugin, "corejax_declare_api_version", None)
    version = hookspecs.API_VERSION if declare is None else declare()
    if type(version) is not int:
        raise PluginError(f"corejax_declare_api_version gives an int, this one gave {version!r}")
    if version != hookspecs.API_VERSION:
        advice = "upgrade corejax" if version > hookspecs.API_VERSION else "upgrade the plugin"
        raise PluginError(
            f"it was made for plugin API version {version}, this corejax has version {hookspecs.API_VERSION}; {advice}"
        )


def check_hooks(plugin: Any, manager: pluggy.PluginManager) -> None:
    """Refuse hooks that nobody would ever call.

    Raises:
        PluginError: naming the hook and the one that was probably meant.
    """
    marked = 0
    for name in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, name)
        if options is None:
            if name in HOOKS and inspect.isroutine(getattr(plugin, name)):
                raise PluginError(f"{name} is not marked as a hook: put @corejax.extend.hookimpl above it")
            continue
        marked += 1
        hook = options.get("specname") or name
        if hook not in HOOKS:
            entry = find(hook)
            if entry is not None:
                raise PluginError(entry.message(f"hook {hook}"))
            close = difflib.get_close_matches(hook, HOOKS, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(HOOKS)}"
            raise PluginError(f"there is no hook named {hook}; {hint}")
        if options.get("wrapper") or options.get("hookwrapper"):
            raise PluginError(f"{hook} is declared as a wrapper; plugins answer for themselves only")
    if not marked:
        raise PluginError(f"{plugin!r} has no hooks: mark functions named corejax_... with @hookimpl")


def check_arguments(plugin: Any, manager: pluggy.PluginManager) -> None:
    """Refuse arguments that a hook does not have (any more).

    Raises:
        PluginError: naming the argument, and its replacement or the arguments that there are.
    """
    for name in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, name)
        if options is None:
            continue
        hook = options.get("specname") or name
        known = inspect.signature(getattr(hookspecs, hook)).parameters
        for argument in _argument_names(getattr(plugin, name)):
            if argument not in known and argument != "self":
                gone = arguments_of(hook).get(argument)
                if gone is not None:
                    raise PluginError(gone.message(f"argument {argument!r} of hook {hook}"))
                takes = f"it takes any of {', '.join(known)}" if known else "it takes none"
                raise PluginError(f"hook {hook} has no argument {argument!r}; {takes}")


def _argument_names(implementation: Any) -> list[str]:
    """What pluggy passes: positional arguments without a default."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(implementation).parameters.values()
    return [p.name for p in parameters if p.kind in positional and p.default is p.empty]


_WORD = "a word, or several with dots between them, none of Python's own and none that begins with an underscore"


def _is_word(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def check_backends(provided: Any) -> dict[str, str]:
    """What `corejax_provide_backends` returned, validated; nothing is imported.

    Raises:
        PluginError: naming the entry and the form that is wanted.
    """
    example = '{"acme": "acme_corejax.backend:BACKEND"}'
    if provided is None:
        return {}
    if not isinstance(provided, Mapping):
        raise PluginError(f"corejax_provide_backends gives a mapping such as {example}, this one gave {provided!r}")
    for name, target in provided.items():
        if not (isinstance(name, str) and isinstance(target, str) and target.count(":") == 1):
            raise PluginError(f"corejax_provide_backends gives entries such as {example}, got {name!r}: {target!r}")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise PluginError(
                f"a backend's name is lower-case letters, digits and underscores, such as 'acme'; got {name!r}"
            )
    return dict(provided)


def check_exports(hook: str, exports: Any) -> dict[str, str]:
    """What an export hook returned, validated.

    Raises:
        PluginError: naming the entry and the form that is wanted.
    """
    colons = 1 if hook == "corejax_export_names" else 0
    example = '{"jit": "acme_corejax.api:jit"}' if colons else '{"lax": "acme_corejax.lax"}'
    if exports is None:
        return {}
    if not isinstance(exports, Mapping):
        raise PluginError(f"{hook} gives a mapping such as {example}, this one gave {exports!r}")
    for name, target in exports.items():
        if not (isinstance(name, str) and isinstance(target, str) and target.count(":") == colons):
            raise PluginError(f"{hook} gives entries such as {example}, got {name!r}: {target!r}")
        if not all(_is_word(word) and not word.startswith("_") for word in name.split(".")):
            raise PluginError(f"{hook}: nobody could write a name such as {name!r}; it is {_WORD}")
        if not all(map(_is_word, re.split("[.:]", target))):
            raise PluginError(f"{hook}: {name!r} is to be found at {target!r}, which is no place for an object")
    return dict(exports)
