"""Lowering of equations with values that are stored in other arrays, such as random keys and value types.

In StableHLO such a value is a `PackedValue`. Most translation rules take it whole, as those of `scan` and of primitives
that decompose do. There are two kinds of equations that are lowered as operations on the stored arrays instead:

    its primitive has a physical rule                `random_unwrap`, which returns the numbers
    it moves elements of an extended dtype           `slice`: its vmap rule, with the numbers of an element as a batch
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    dtypes,
    move_batch_axis,
    stage_closed,
    vmap_rules,
)
from corejax.extend.messages import CorejaxError
from corejax.extend.transforms import batch_flat
from corejax.extend.types import physical_rules
from corejax_xla_backend._lowering.types import flat_values, packed_values
from corejax_xla_backend._parts import flat_avals, is_stored


class NoPhysicalRuleError(CorejaxError, NotImplementedError):
    """Raised if no rule says how a primitive computes with arrays of an extended dtype."""


def rule_of_parts(eqn: JaxprEqn) -> Callable[..., Any] | None:
    """Return the translation rule of an equation as operations on stored arrays, or None.

    Raises:
        NoPhysicalRuleError: the primitive moves elements, and has no rule that the translation needs.
    """
    avals_in, avals_out = ([v.aval for v in atoms] for atoms in (eqn.invars, eqn.outvars))
    if not any(map(is_stored, (*avals_in, *avals_out))):
        return None
    primitive = eqn.primitive
    rule = physical_rules.get(primitive)
    if rule is not None:
        fun = functools.partial(rule, avals_in, **eqn.params)
    elif any(map(_is_extended, avals_in)) and "structural" in primitive.tags and primitive.decomposition is None:
        if vmap_rules.get(primitive) is None:
            raise NoPhysicalRuleError(
                f"primitive {primitive.name!r} is applied to {', '.join(a.str_short() for a in avals_in)}, but has no "
                "physical rule, decomposition or vmap rule that says how to compute with the numbers"
            )
        fun = functools.partial(_over_elements, primitive, avals_in, eqn.params)
    else:
        return None
    application = stage_closed(lambda *parts: _as_list(fun(*parts)), flat_avals(avals_in))
    _check_results(eqn, application)

    def translation(ctx: Any, in_avals: Any, in_vals: Sequence[Any], **params: Any) -> Any:
        outs = packed_values(avals_out, ctx.inline(application, flat_values(in_vals)))
        return outs if primitive.multiple_results else outs[0]

    return translation


def _is_extended(aval: ShapedArray) -> bool:
    return aval.dtype.names is not None


def _as_list(out: Any) -> list[Any]:
    return list(out) if isinstance(out, list | tuple) else [out]


def _check_results(eqn: JaxprEqn, application: ClosedJaxpr) -> None:
    """Raise NoPhysicalRuleError if an application does not have the types of the parts of the results."""
    wanted = flat_avals([v.aval for v in eqn.outvars])
    if [(a.shape, a.dtype) for a in application.out_avals] != [(a.shape, a.dtype) for a in wanted]:
        returned, stored = (", ".join(a.str_short() for a in avals) for avals in (application.out_avals, wanted))
        raise NoPhysicalRuleError(
            f"primitive {eqn.primitive.name!r} returns {', '.join(v.aval.str_short() for v in eqn.outvars)}, stored as "
            f"{stored}, but {returned} if it is applied to the stored arrays: it needs a physical rule"
        )


def _over_elements(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], *numbers: Any) -> Any:
    """Apply a primitive to the numbers of each element: vmap over the element's axes, the last axis first."""
    _, inner = dtypes.element_of(next(a.dtype for a in avals if _is_extended(a)))
    dims = [a.ndim if _is_extended(a) else None for a in avals]

    def apply(depth: int) -> Callable[..., list[Any]]:
        if depth == len(inner):
            return lambda *vals: _as_list(primitive.bind(*vals, **params))
        size = inner[len(inner) - 1 - depth]

        def batched(*vals: Any) -> list[Any]:
            where = [None if d is None else d + len(inner) - 1 - depth for d in dims]
            outs, dims_out = batch_flat(apply(depth + 1), size, vals, where)
            return [move_batch_axis(size, d, x.ndim - (d is not None), x) for x, d in zip(outs, dims_out, strict=True)]

        return batched

    return apply(0)(*numbers)
