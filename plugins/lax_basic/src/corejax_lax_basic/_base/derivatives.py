"""Derivatives of primitives, as rows of tables state them; `defzero` is one as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Primitive, defjvp, defjvp_with_result, deflinear, get_aval, jvp_rules
from corejax.extend.transforms import zero_cotangent

__corejax_registers_for_caller__ = True  # a rule's provenance is the row's line, not one of this file

Function = Callable[..., Any]
Derivative = Callable[[Primitive], object]


def tangents(*formulas: Function | None) -> Derivative:
    """State the term that each operand's tangent `t` adds to the result's tangent: `f(t, *operands)`."""
    return lambda primitive: defjvp(primitive, *formulas)


def tangents_with_result(*formulas: Function | None) -> Derivative:
    """State terms of the tangent as `tangents`, by functions of the result as well: `f(t, out, *operands)`."""
    return lambda primitive: defjvp_with_result(primitive, *formulas)


def linear(transpose: Function) -> Derivative:
    """State that a primitive is linear in all operands together; `transpose(ct, *operands)` gives their cotangents."""
    return lambda primitive: deflinear(primitive, transpose)


def jvp_rule(rule: Function) -> Derivative:
    """State a complete JVP rule, which receives None for zero tangents."""
    return lambda primitive: jvp_rules.register(primitive, rule, symbolic_zeros=True)


def linear_in(primitive: Primitive) -> None:
    """Register the JVP rule of a primitive that is linear in its operands `linear_in`, and discrete in the others."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        outs = primitive.bind(*primals, **params)
        if all(tangents[i] is None for i in primitive.linear_in):
            return outs, None
        operands = list(primals)
        for i in primitive.linear_in:
            operands[i] = zero_cotangent(get_aval(primals[i])) if tangents[i] is None else tangents[i]
        return outs, primitive.bind(*operands, **params)

    jvp.__name__ = f"{primitive.name}_jvp"
    jvp_rules.register(primitive, jvp, symbolic_zeros=True)
