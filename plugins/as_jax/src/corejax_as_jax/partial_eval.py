"""`jax.interpreters.partial_eval`: tracing and partial evaluation, with JAX's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, ShapedArray, stage
from corejax.extend import dce_jaxpr as dce_closed
from corejax.extend.transforms import partial_eval_flat


class PartialVal(tuple[Any, Any]):
    """A value that may be known: `(type, None)` or `(None, value)`."""

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """Return a partial value with a known type only."""
        return cls((aval, None))

    @classmethod
    def known(cls, value: Any) -> PartialVal:
        """Return a partial value with a known value."""
        return cls((None, value))

    def is_known(self) -> bool:
        """Return whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """Return the value, or None if it is not known."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> Any:
        """Return the type."""
        from corejax.extend import get_aval

        return get_aval(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Evaluate the operations that depend only on known arguments, and stage the others.

    Returns:
        The program of the unknown part, the results as partial values, and the values of the program's constants.
    """
    known = [value for _, value in pvals]
    jaxpr, residuals, outs, unknown = partial_eval_flat(fun.call_wrapped, known, [aval for aval, _ in pvals])
    avals = iter([v.aval for v in jaxpr.outvars])
    results = [
        PartialVal.unknown(next(avals)) if is_unknown else PartialVal.known(x)
        for is_unknown, x in zip(unknown, outs, strict=True)
    ]
    return jaxpr, results, residuals


def trace_to_jaxpr_dynamic(
    fun: Any, in_avals: Sequence[ShapedArray], **options: Any
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """Trace a function of flat arguments; return the program, the types of its results, and its constants."""
    jaxpr, consts = stage(fun.call_wrapped, in_avals)
    return jaxpr, jaxpr.out_avals, consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Eliminate equations that the used outputs do not need; also return which arguments remain."""
    if jaxpr.constvars:
        raise NotImplementedError("dce_jaxpr of a program with constants: use dce_jaxpr_consts")
    closed, used = dce_closed(ClosedJaxpr(jaxpr), list(used_outputs), instantiate)
    return closed.jaxpr, used


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Eliminate dead code as `dce_jaxpr` does; also return which constants are used."""
    count = len(jaxpr.constvars)
    opened = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    keep = instantiate if isinstance(instantiate, bool) else [False] * count + list(instantiate)
    new, used = dce_jaxpr(opened, used_outputs, keep)
    kept = sum(used[:count])
    new = new.replace(constvars=new.invars[:kept], invars=new.invars[kept:])
    return new, used[:count], used[count:]


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """Make the constants of a program its first arguments."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Return a closed program, from one without constants."""
    return ClosedJaxpr(jaxpr)
