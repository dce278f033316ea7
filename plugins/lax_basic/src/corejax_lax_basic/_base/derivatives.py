"""What the derivative of a primitive is, as rows of tables say it; `defzero` is one too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive, defjvp, defjvp_with_result, deflinear, jvp_rules

__corejax_registers_for_caller__ = True  # a rule's provenance is the row's line, not one of this file

Function = Callable[..., Any]
Derivative = Callable[[Primitive], None]


def tangents(*formulas: Function | None) -> Derivative:
    """For each operand, what its tangent `t` adds to the result's: `f(t, *operands)`."""
    return lambda primitive: defjvp(primitive, *formulas)


def tangents_with_result(*formulas: Function | None) -> Derivative:
    """As `tangents`, with the result too: `f(t, out, *operands)`."""
    return lambda primitive: defjvp_with_result(primitive, *formulas)


def linear(transpose: Function) -> Derivative:
    """Linear in all operands together; `transpose(ct, *operands)` gives their cotangents."""
    return lambda primitive: deflinear(primitive, transpose)


def jvp_rule(rule: Function) -> Derivative:
    """A JVP rule written out, which gets None for zero tangents."""
    return lambda primitive: jvp_rules.register(primitive, rule, symbolic_zeros=True)
