"""`Provenance`: the module, file and line that contributed a primitive or a rule.

The plugin that the module belongs to is looked up only when it is shown.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

__corejax_registers_for_caller__ = True


class Provenance(NamedTuple):
    """The place of a definition.

    Attributes:
        module: dotted name of the module.
        file: file of the module, or None for built-in code.
        line: line in that file, or None.
    """

    module: str
    file: str | None = None
    line: int | None = None

    @classmethod
    def of(cls, function: object, caller: Provenance | None = None) -> Provenance:
        """Return the place of a rule's function, or that of its registration if the function is of another package.

        If a plugin registers a library's function (`np.sin`, `scipy.special.erf`), the plugin owns the rule.
        """
        while isinstance(function, functools.partial) or hasattr(function, "__wrapped__"):
            if hasattr(function, "__provenance__"):
                break
            function = function.func if isinstance(function, functools.partial) else function.__wrapped__
        explicit = getattr(function, "__provenance__", None)
        if explicit is not None:
            return explicit  # type: ignore[no-any-return]  # only this package sets it
        caller = caller or cls.of_caller()
        code = getattr(function, "__code__", None)
        module = getattr(function, "__module__", None)
        if code is None or module is None:
            return caller
        here = cls(module, code.co_filename, code.co_firstlineno)
        return here if caller.package in (here.package, "corejax") else caller

    @classmethod
    def of_frame(cls, frame: FrameType) -> Provenance:
        """Return the line that a frame is executing."""
        return cls(frame.f_globals.get("__name__", "__main__"), frame.f_code.co_filename, frame.f_lineno)

    @classmethod
    def of_caller(cls) -> Provenance:
        """Return the line of the innermost caller in a module that does not set `__corejax_registers_for_caller__`."""
        frame = sys._getframe(1)
        while frame.f_back is not None and "__corejax_registers_for_caller__" in frame.f_globals:
            frame = frame.f_back
        return cls.of_frame(frame)

    @property
    def package(self) -> str:
        """Top-level package of the module."""
        return self.module.partition(".")[0]

    @property
    def owner(self) -> str:
        """The owner for messages: `plugin NAME VERSION`, `the kernel`, or `module NAME` if no plugin has the module."""
        plugin, version, _ = _resolve(self.module)
        if plugin:
            return f"plugin {plugin} {version or 'of unknown version'}"
        return "the kernel" if self.package == "corejax" else f"module {self.module}"

    @property
    def plugin(self) -> str | None:
        """Name of the plugin, if the module belongs to one."""
        return _resolve(self.module)[0]

    @property
    def version(self) -> str | None:
        """Version of the plugin's distribution."""
        return _resolve(self.module)[1]

    @property
    def distribution(self) -> str | None:
        """Name of the plugin's distribution."""
        return _resolve(self.module)[2]

    def redefines(self, earlier: Provenance) -> bool:
        """Return True if this is the same definition, run again: a reloaded module, a notebook's cell run twice."""
        if self.module != earlier.module:
            return False
        return self.module == "__main__" or (self.file, self.line) == (earlier.file, earlier.line)

    def __str__(self) -> str:
        if self.file is None:
            return self.owner
        return f"{self.owner} ({os.path.basename(self.file)}:{self.line})"


# module -> (plugin name, version, distribution) of the plugin that it belongs to
Resolver = Callable[[str], tuple[str, str | None, str | None] | None]
_resolver: Resolver = lambda module: None  # noqa: E731  set by `corejax.plugins`


def set_resolver(resolver: Resolver) -> None:
    """Set the function that looks up the plugin of a module."""
    global _resolver
    _resolver = resolver


def _resolve(module: str) -> tuple[str | None, str | None, str | None]:
    return _resolver(module) or (None, None, None)
