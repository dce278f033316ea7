"""Construction of a binary operator and its reflected one from a function.

Programs call operators more often than anything else, so that an operator has a short path for each frequent pair of
operands: two arrays of one type, or an array and a Python scalar that takes its type, bind the primitive at once;
arrays of one dtype are broadcast first. Only other operands are promoted. Each path computes what `apply` computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Array, Primitive, remembered
from corejax.extend.messages import frames_left_out
from corejax_lax_basic._base.scalars import scalar_maker
from corejax_lax_basic._base.type_rules import Kinds, dtypes_of
from corejax_lax_basic._promotion import as_operand, broadcast_operands, yielding_scalar
from corejax_lax_basic.elementwise.arithmetic import add_p

Binary = Callable[[Any, Any], Any]


def constant(x: Any, value: float) -> Any:
    """Return a Python number as a scalar of the dtype of `x`."""
    return scalar_maker(x.aval.dtype, x.aval.weak_type)(value)


def _unsupported(other: Any, name: str) -> Any:
    """Return NotImplemented, so that Python tries the other operand; refuse containers, which would repeat or join."""
    if type(other) in (list, tuple, set, dict):
        raise TypeError(
            f"{name} takes arrays and scalars, got {type(other).__name__}; make it an array with corejax.numpy.asarray"
        )
    return NotImplemented


def operator(name: str, apply: Binary, primitive: Primitive = add_p, kinds: Kinds = frozenset()) -> dict[str, Any]:
    """Define an operator and its reflected one.

    Args:
        name: `"add"` for `__add__`.
        apply: function of two operands that computes the operator.
        primitive: the primitive that computes it for operands of one type, or of an array and a Python scalar.
        kinds: the kinds of dtypes for which the primitive alone computes it.
    """
    direct = dtypes_of(*kinds)
    bind = primitive.bind

    promoted = remembered(apply)  # of arrays of several dtypes

    @remembered
    def broadcast(x: Any, y: Any) -> Any:
        return primitive.bind(*broadcast_operands(x, y, name=primitive.name))

    def forward(self: Any, other: Any) -> Any:
        aval = self.aval
        if aval.dtype in direct:
            other_aval = getattr(other, "aval", None)
            if other_aval is aval:
                return bind(self, other)
            if other_aval is None:
                if (make := yielding_scalar(aval, type(other))) is not None:
                    try:
                        scalar = make(other)
                    except OverflowError:
                        return apply(self, other)
                    return bind(self, scalar)
            elif other_aval.dtype is aval.dtype:
                if not aval.shape or not other_aval.shape or other_aval.shape == aval.shape:
                    return bind(self, other)
                try:
                    return broadcast(self, other)
                except frames_left_out():
                    raise
        try:
            if type(other) is Array:
                return promoted(self, other)
            operand = as_operand(other)
            return _unsupported(other, name) if operand is NotImplemented else apply(self, operand)
        except frames_left_out():
            raise

    def reflected(self: Any, other: Any) -> Any:
        if self.aval.dtype in direct and (make := yielding_scalar(self.aval, type(other))) is not None:
            return bind(make(other), self)
        try:
            operand = as_operand(other)
            return _unsupported(other, name) if operand is NotImplemented else apply(operand, self)
        except frames_left_out():
            raise

    return {f"__{name}__": forward, f"__r{name}__": reflected}
