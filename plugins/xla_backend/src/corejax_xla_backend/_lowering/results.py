"""What translation rules give is checked against what abstract evaluation promised, while the program is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, Var, mismatch, xla_translations
from corejax_xla_backend._lowering.types import Value


def results_of_rule(primitive: Primitive, out: Any, outvars: Sequence[Var]) -> Sequence[Any]:
    """Return the StableHLO values that a primitive's rule gave, one for each variable.

    Raises:
        TypeError: too many or too few, no values, or values of another shape or dtype; names the rule.
    """
    if type(out) is Value and not primitive.multiple_results and out.aval is outvars[0].aval:
        return (out,)
    outs = out if primitive.multiple_results else (out,)
    if isinstance(outs, list | tuple) and len(outs) == len(outvars):
        for x, v in zip(outs, outvars, strict=True):
            found = getattr(x, "aval", None)
            if found is not v.aval and not _fits(found, v.aval):
                break
        else:
            return outs
    promised = [v.aval.str_short() for v in outvars]
    wanted = f"a list of types [{', '.join(promised)}]" if primitive.multiple_results else promised[0]
    raise mismatch(xla_translations, primitive, f"{_shown(out)} where abstract evaluation promises {wanted}")


def _fits(found: Any, aval: ShapedArray) -> bool:
    return isinstance(found, ShapedArray) and found.shape == aval.shape and found.dtype == aval.dtype


def _shown(out: Any) -> str:
    if isinstance(out, list | tuple):
        return f"a {type(out).__name__} of {len(out)} [{', '.join(_shown(x) for x in out)}]"
    if isinstance(getattr(out, "aval", None), ShapedArray):
        return f"a value of type {out.aval.str_short()}"
    return "None" if out is None else f"{out!r} of type {type(out).__name__}"
