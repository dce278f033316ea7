"""What to use instead of names that left `corejax.extend` and of hooks that were removed.

To retire a name: take it out of `corejax/extend.py` and add a line to `TABLE`,

    "old": Deprecation("corejax.extend.new", removed="0.4", target="corejax.interpreters.jvp:new"),

and `corejax.extend.old` still gives that object, with a `CorejaxDeprecationWarning`. Two minor versions later delete
the `target`: from then on the name raises an error that names the replacement. A hook gets its line when it is
removed; until then pluggy warns (`corejax/plugins/hookspecs.py`).
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any, NamedTuple

from corejax.errors import CorejaxDeprecationWarning, RemovedImportError, RemovedNameError


class Deprecation(NamedTuple):
    """One retired name.

    Attributes:
        use: what to use instead, as an author would write it.
        removed: the first version of corejax without the name.
        target: place of the object, `module:attribute`; empty if the object is gone.
    """

    use: str
    removed: str
    target: str = ""

    def message(self, what: str) -> str:
        """Return the sentence of the warning or the error; `what` is the name as the author wrote it."""
        fate = "is deprecated and will be removed" if self.target else "was removed"
        return f"{what} {fate} in corejax {self.removed}; use {self.use} instead"


TABLE: dict[str, Deprecation] = {}


def retired(name: str, *, importing: bool) -> Any:
    """Return the object of a name that left `corejax.extend`, with a warning to the caller of its `__getattr__`.

    Args:
        name: the name.
        importing: whether `from corejax.extend import name` asks, which hides the message of an AttributeError.

    Raises:
        AttributeError: `corejax.extend` never had the name.
        RemovedNameError, RemovedImportError: the name was removed; the message names the replacement.
    """
    entry, full = TABLE.get(name), f"corejax.extend.{name}"
    if entry is None:
        from corejax.texts import no_such_name  # needed for an error only

        raise no_such_name("corejax.extend", name, vars(importlib.import_module("corejax.extend"))["__all__"])
    if not entry.target:
        raise (RemovedImportError if importing else RemovedNameError)(entry.message(full))
    warnings.warn(entry.message(full), CorejaxDeprecationWarning, stacklevel=3)
    module, _, attribute = entry.target.partition(":")
    return getattr(importlib.import_module(module), attribute)
