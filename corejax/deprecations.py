"""Names that leave `corejax.extend`, and hooks that are gone: one table that says what to use instead.

To retire a name: take it out of `corejax/extend.py` and add a line to `TABLE`,

    "old": Deprecation("corejax.extend.new", removed="0.4", target="corejax.interpreters.jvp:new"),

and `corejax.extend.old` still gives that object, with a `CorejaxDeprecationWarning`. Two minor versions later the
`target` is deleted: from then on the line makes the error that names the replacement. A hook gets its line when it
is removed; until then pluggy warns (`corejax/plugins/hookspecs.py`).
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any, NamedTuple

from corejax.errors import CorejaxDeprecationWarning, RemovedImportError, RemovedNameError


class Deprecation(NamedTuple):
    """What became of a name.

    Attributes:
        use: what to use instead, as an author would write it.
        removed: the version of corejax that has it no more.
        target: `module:attribute` where the object still is; empty where it is gone.
    """

    use: str
    removed: str
    target: str = ""

    def message(self, what: str) -> str:
        """The sentence of the warning or the error; `what` is the thing, as the reader knows it."""
        fate = "is deprecated and will be removed" if self.target else "was removed"
        return f"{what} {fate} in corejax {self.removed}; use {self.use} instead"


TABLE: dict[str, Deprecation] = {
    "PartialEvalTracer": Deprecation(
        "PartialEvalTrace.is_unknown(x)", removed="0.3", target="corejax.interpreters.partial_eval:PartialEvalTracer"
    ),
    "backward_pass": Deprecation(
        "corejax.extend.transpose_jaxpr", removed="0.3", target="corejax.interpreters.transposition:backward_pass"
    ),
    "blame": Deprecation(
        "corejax.extend.attribute_to_rule", removed="0.3", target="corejax.attribution:attribute_to_rule"
    ),
    "blamed_rule": Deprecation(
        "corejax.extend.attributed_rule", removed="0.3", target="corejax.attribution:attributed_rule"
    ),
    "BufferFunctions": Deprecation("corejax.extend.Backend", removed="0.1"),
    "context_hooks": Deprecation("corejax.extend.on_context", removed="0.3", target="corejax.trace:_context_hooks"),
    "hoist_consts": Deprecation("corejax.extend.close_over_consts", removed="0.1"),
    "is_import_from": Deprecation(
        "corejax.extend.missing_name(name)", removed="0.3", target="corejax.plugins:is_import_from"
    ),
    "manifest_differences": Deprecation("corejax_testing.verify_manifest", removed="0.1"),
    "misfit": Deprecation("corejax.extend.mismatch", removed="0.3", target="corejax.run_rule:mismatch"),
    "not_mapped": Deprecation("None", removed="0.3", target="corejax.interpreters.batching:not_mapped"),
    "set_buffer_functions": Deprecation("corejax.extend.Backend and the hook corejax_provide_backends", removed="0.1"),
    "trace_state": Deprecation(
        "corejax.extend.current_trace, axes_in_scope, in_context, scope or replaying",
        removed="0.3",
        target="corejax.trace:state",
    ),
    "without_forwarded": Deprecation(
        "corejax.extend.defcall",
        removed="0.3",
        target="corejax.interpreters.partial_eval_jaxpr:without_forwarded",
    ),
}


def retired(name: str, *, importing: bool, stacklevel: int = 3) -> Any:
    """What `corejax.extend` gives for a name that it does not have: the object, with a warning, or an error.

    Args:
        name: the name that was asked for.
        importing: whether `from corejax.extend import name` asks, which hides the message of an AttributeError.
        stacklevel: which frame the warning is about, counted from this one.

    Raises:
        AttributeError: there never was such a name.
        RemovedNameError, RemovedImportError: there was; the message names the replacement.
    """
    entry, full = TABLE.get(name), f"corejax.extend.{name}"
    if entry is None:
        from corejax.texts import no_such_name  # needed for an error only

        raise no_such_name("corejax.extend", name, vars(importlib.import_module("corejax.extend"))["__all__"])
    if not entry.target:
        raise (RemovedImportError if importing else RemovedNameError)(entry.message(full))
    warnings.warn(entry.message(full), CorejaxDeprecationWarning, stacklevel=stacklevel)
    module, _, attribute = entry.target.partition(":")
    return getattr(importlib.import_module(module), attribute)
