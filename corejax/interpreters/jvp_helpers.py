"""Helpers that register JVP rules given one function for each operand: `defjvp` and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.base.provenance import Provenance
from corejax.core.avals import Operands
from corejax.core.primitive import Primitive
from corejax.interpreters.differentiability import checked_rules, wrong_count
from corejax.interpreters.jvp import add_tangents, zeros_like
from corejax.rules import RuleFn, jvp_rules, transpose_rules

__corejax_registers_for_caller__ = True


def defjvp(primitive: Primitive, *rules: RuleFn | None) -> None:
    """Register a JVP rule given one function for each operand.

    Args:
        primitive: a primitive with one result.
        rules: `rule(tangent, *primals, **params) -> tangent of the result` for each operand; None if the derivative
            is zero, `nondifferentiable(reason)` if it does not exist.

    Raises:
        TypeError: the primitive has several results, a rule is not callable, or the number of rules is not the number
            of operands. If that number is not known yet, the registered rule raises.
    """
    _register_by_operand("defjvp", primitive, rules, with_result=False)


def defjvp_with_result(primitive: Primitive, *rules: RuleFn | None) -> None:
    """Do as `defjvp`, with rules that take the result as well: `rule(tangent, out, *primals, **params)`."""
    _register_by_operand("defjvp_with_result", primitive, rules, with_result=True)


def _register_by_operand(helper: str, primitive: Primitive, rules: Sequence[Any], *, with_result: bool) -> None:
    """Register the rule that sums the contributions of the operands."""
    refused = checked_rules(helper, primitive, rules)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        if len(primals) != len(rules):
            raise wrong_count(helper, primitive, len(rules), len(primals))
        out = primitive.bind(*primals, **params)
        values = (out, *primals) if with_result else primals
        tangent = None
        for rule, t in zip(rules, tangents, strict=True):
            if t is not None and rule is not None:
                tangent = add_tangents(tangent, rule(t, *values, **params))
        return out, tangent

    _register(primitive, jvp, rules, **({"nondifferentiable": refused} if refused else {}))


def deflinear(primitive: Primitive, transpose: Callable[..., object]) -> None:
    """Register the JVP and transpose rules of a primitive that is linear in its operands `linear_in`; in all, if empty.

    Args:
        primitive: a primitive that is not differentiated in its other operands; that raises TypeError.
        transpose: `transpose(ct, *primals_in, **params) -> [ct or None]`.
    """

    def jvp(primals: Operands, tangents: Operands, /, **params: object) -> tuple[Any, Any]:
        linear, dots = primitive.linear_in or range(len(primals)), list(tangents)
        for i, (x, t) in enumerate(zip(primals, tangents, strict=True)):
            if t is not None and i not in linear:
                raise TypeError(f"{primitive.name}: operand {i} is not in linear_in; add it, or write a JVP rule")
            dots[i] = t if t is not None else zeros_like(x) if i in linear else x
        return primitive.bind(*primals, **params), primitive.bind(*dots, **params)

    _register(primitive, jvp, (transpose,))
    transpose_rules.register(primitive, transpose)


def defzero(primitive: Primitive) -> None:
    """Register the JVP rule of a primitive with a zero derivative everywhere (comparisons, rounding)."""

    def jvp(primals: Operands, tangents: Operands, /, **params: object) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, [None] * len(out) if primitive.multiple_results else None

    _register(primitive, jvp, ())


def _register(primitive: Primitive, jvp: Any, rules: Sequence[object], **flags: Any) -> None:
    """Register a rule that a helper built; its provenance is that of the first function the author passed."""
    written = next((r for r in rules if getattr(r, "__code__", None) is not None), None)
    place = Provenance.of(written) if written is not None else Provenance.of_caller()
    jvp.__name__, jvp.__module__, jvp.__provenance__ = f"{primitive.name}_jvp", place.module, place
    jvp_rules.register(primitive, jvp, symbolic_zeros=True, **flags)
