"""What authors may still use but should not: one table, and what warns, then refuses, by it.

An entry lives for two minor versions: where it is used, `CorejaxDeprecationWarning` names the replacement. From the
version in `removed` on, the same place raises an error that names the replacement. Entries stay in the table after
that, so that the error can.

How to deprecate, each with an entry in `TABLE`:

- a name of `corejax.extend`: take it out of the module and its `__all__`; `target` says where the object is.
- an argument of a function: take it out of the signature and put `@renamed_arguments("function")` above.
- an argument of a hook: keep it in the hook's signature until it is removed; the manager gives it the value of its
  replacement.
- a hook: keep its specification until it is removed; the manager calls it where it would call its replacement.
"""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from corejax.errors import CorejaxDeprecationWarning, RemovedArgumentError, RemovedImportError, RemovedNameError

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Deprecation:
    """One entry.

    Attributes:
        name: what is deprecated: `"defjvp"`, an argument `"defjvp(rule)"`, a hook `"corejax_register_rules"`, its
            argument `"corejax_register_rules(registry)"`.
        since: the version that first warns, `"0.2"`.
        use: what to use instead, as an author would write it: `"corejax.extend.defjvp"`, an argument's new name.
            Of an argument that has none, empty.
        target: of a name, where the object is until then: `"corejax.interpreters.jvp:defjvp"`.
        removed: the version that first refuses; by default two minor versions after `since`.
        note: a sentence more, for the message.
    """

    name: str
    since: str
    use: str = ""
    target: str = ""
    removed: str = ""
    note: str = ""

    @property
    def removed_in(self) -> tuple[int, int]:
        """The version that first refuses."""
        major, minor = minor_version(self.since)
        return minor_version(self.removed) if self.removed else (major, minor + 2)

    @property
    def gone(self) -> bool:
        """Whether this corejax refuses it."""
        return minor_version(current_version()) >= self.removed_in

    def message(self, what: str) -> str:
        """The sentence of the warning or the error; `what` is the thing, as the reader knows it."""
        when = ".".join(map(str, self.removed_in))
        fate = f"was removed in corejax {when}" if self.gone else f"is deprecated and will be removed in corejax {when}"
        advice = f"use {self.use} instead" if self.use else "leave it out"
        return f"{what} {fate}; {advice}{f'. {self.note}' if self.note else ''}"

    def warn(self, what: str, stacklevel: int) -> None:
        """Warn at the author's line; `stacklevel` counts from the caller."""
        warnings.warn(self.message(what), CorejaxDeprecationWarning, stacklevel=stacklevel + 1)


# The one place. Newest last.
TABLE: list[Deprecation] = []


def current_version() -> str:
    """The version of this corejax."""
    from importlib.metadata import version

    return version("corejax")


def minor_version(version: str) -> tuple[int, int]:
    """(major, minor) of a version: `"0.3.1.dev2"` gives (0, 3).

    Raises:
        ValueError: the text does not begin with two numbers.
    """
    found = re.match(r"\s*v?(\d+)\.(\d+)", version)
    if found is None:
        raise ValueError(f"not a version: {version!r}")
    return int(found[1]), int(found[2])


def find(name: str) -> Deprecation | None:
    """The entry of that name."""
    return next((entry for entry in TABLE if entry.name == name), None)


def arguments_of(function: str) -> dict[str, Deprecation]:
    """Deprecated arguments of a function or hook, by name."""
    pattern = re.compile(rf"{re.escape(function)}\((\w+)\)")
    matches = ((pattern.fullmatch(entry.name), entry) for entry in TABLE)
    return {match[1]: entry for match, entry in matches if match is not None}


def deprecated_name(module: str, name: str, *, importing: bool = False, stacklevel: int = 3) -> Any:
    """What a module's `__getattr__` gives for a name that it does not have.

    Args:
        module: the module's name.
        name: the name that was asked for.
        importing: whether `from module import name` asks, which hides the message of an AttributeError.
        stacklevel: which frame the warning is about, counted from the caller.

    Returns:
        The deprecated object, with a warning.

    Raises:
        AttributeError: there never was such a name.
        RemovedNameError, RemovedImportError: there was; the message names the replacement.
    """
    entry = find(name)
    if entry is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if entry.gone:
        error = RemovedImportError if importing else RemovedNameError
        raise error(entry.message(f"{module}.{name}"))
    entry.warn(f"{module}.{name}", stacklevel)
    where, _, attribute = entry.target.partition(":")
    return getattr(importlib.import_module(where), attribute)


def renamed_arguments(function: str) -> Callable[[_F], _F]:
    """A decorator: keyword arguments that the table has for `function` are taken under their old names.

    The wrapped function warns and passes the value on under the new name (or drops it where there is none).

    Raises:
        RemovedArgumentError: when called with an argument that is gone.
        TypeError: when called with both the old and the new name.
    """

    def decorate(fn: _F) -> _F:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for old, entry in arguments_of(function).items():
                if old in kwargs:
                    _rename(function, old, entry, kwargs)
            return fn(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def _rename(function: str, old: str, entry: Deprecation, kwargs: dict[str, Any]) -> None:
    what = f"argument {old!r} of {function}"
    if entry.gone:
        raise RemovedArgumentError(entry.message(what))
    if entry.use in kwargs:
        raise TypeError(f"{function} got {old!r} and {entry.use!r}, which are the same argument; leave out {old!r}")
    entry.warn(what, 3)
    value = kwargs.pop(old)
    if entry.use:
        kwargs[entry.use] = value


def earlier_hooks(hook: str) -> list[str]:
    """Deprecated hooks that a plugin may implement in place of this one."""
    return [entry.name for entry in TABLE if entry.use == hook and entry.name.startswith("corejax_") and not entry.gone]


def hook_warning(hook: str) -> Warning | None:
    """pluggy's `warn_on_impl` for a hook that is deprecated as a whole."""
    entry = find(hook)
    return None if entry is None else CorejaxDeprecationWarning(entry.message(f"hook {hook}"))


def hook_warnings(hook: str, arguments: Sequence[str]) -> dict[str, Warning] | None:
    """pluggy's `warn_on_impl_args` for a hook: deprecated arguments that it still has."""
    found = arguments_of(hook)
    shown: dict[str, Warning] = {
        old: CorejaxDeprecationWarning(entry.message(f"argument {old!r} of hook {hook}"))
        for old, entry in found.items()
        if old in arguments
    }
    return shown or None
