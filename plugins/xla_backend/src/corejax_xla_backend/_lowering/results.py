"""The check of translation rules: their results must have the types that abstract evaluation promised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, Var, mismatch, xla_translations
from corejax_xla_backend._lowering.types import Value


def results_of_rule(primitive: Primitive, out: Any, outvars: Sequence[Var]) -> Sequence[Any]:
    """Return the StableHLO values that a primitive's rule returned, one for each variable.

    Raises:
        TypeError: the rule returned a wrong number of results, or one that is not a value or has another shape or
            dtype. The message names the rule.
    """
    if type(out) is Value and not primitive.multiple_results and out.aval is outvars[0].aval:
        return (out,)
    outs = out if primitive.multiple_results else (out,)
    if isinstance(outs, list | tuple) and len(outs) == len(outvars):
        for x, v in zip(outs, outvars, strict=True):
            aval = getattr(x, "aval", None)
            if aval is not v.aval and not _fits(aval, v.aval):
                break
        else:
            return outs
    promised = [v.aval.str_short() for v in outvars]
    wanted = f"a list of types [{', '.join(promised)}]" if primitive.multiple_results else promised[0]
    raise mismatch(xla_translations, primitive, f"{_describe(out)} where abstract evaluation promises {wanted}")


def _fits(actual: Any, promised: ShapedArray) -> bool:
    """Return whether a result's type has the promised shape and dtype."""
    same_class = type(actual) is type(promised) is ShapedArray
    return same_class and actual.shape == promised.shape and actual.dtype == promised.dtype


def _describe(out: Any) -> str:
    """Describe what a rule returned, for a message."""
    if isinstance(out, list | tuple):
        return f"a {type(out).__name__} of {len(out)} [{', '.join(_describe(x) for x in out)}]"
    if isinstance(getattr(out, "aval", None), ShapedArray):
        return f"a value of type {out.aval.str_short()}"
    return "None" if out is None else f"{out!r} of type {type(out).__name__}"
