"""Type rules and their error messages: kinds of dtypes, equal dtypes, joint shapes.

Operands of an elementwise primitive have one dtype. Their shapes are equal, or some of them are scalars. The result is
weakly typed if all operands are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax.extend.plugins import exported
from corejax_lax_basic._base.arity import takes

__all__ = ["dtypes_of"]  # in `corejax.lax`, for other plugins

Kinds = frozenset[str]

BOOL: Kinds = frozenset({"bool"})
INTEGER: Kinds = frozenset({"integer"})
FLOAT: Kinds = frozenset({"float"})
COMPLEX: Kinds = frozenset({"complex"})
INEXACT = FLOAT | COMPLEX
INTEGRAL = BOOL | INTEGER
NUMERIC = INTEGER | INEXACT
REAL = INTEGER | FLOAT
ORDERED = BOOL | REAL
ANY = BOOL | NUMERIC

_PHRASES = {
    INTEGER: "an integer dtype",
    FLOAT: "a floating-point dtype",
    COMPLEX: "a complex dtype",
    INEXACT: "a floating-point or complex dtype",
    INTEGRAL: "a boolean or integer dtype",
    NUMERIC: "an integer, floating-point or complex dtype",
    REAL: "an integer or floating-point dtype",
    ORDERED: "a boolean, integer or floating-point dtype",
    ANY: "a boolean or numeric dtype",
}

# Primitives for which the function of corejax.numpy, which promotes and broadcasts, has another name.
NUMPY_NAMES = {
    "neg": "negative",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "integer_pow": "power",
    "max": "maximum",
    "min": "minimum",
    "rem": "fmod",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "bitwise_not",
    "select_n": "where",
    "clamp": "clip",
    "reduce_sum": "sum",
    "reduce_prod": "prod",
    "is_finite": "isfinite",
    "atan2": "arctan2",
    "shift_left": "left_shift",
    "shift_right_arithmetic": "right_shift",
    "shift_right_logical": "right_shift",
}
# Primitives for which corejax.numpy has no function that would accept more.
_LAX_ONLY = frozenset({"rsqrt", "logistic", "complex", "real", "imag", "conj", "mulhi"}) | {
    "polygamma", "zeta", "igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta",
}  # fmt: skip
_POSITIONS = ("first", "second", "third", "fourth", "fifth")


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return the kind of a dtype: `"bool"`, `"integer"`, `"float"` or `"complex"`."""
    if dtypes.is_bool(dtype):
        return "bool"
    if dtypes.is_integer(dtype):
        return "integer"
    return "complex" if dtypes.is_complex(dtype) else "float"


_KINDS = {dtype: kind_of(dtype) for dtype in dtypes.LONG_NAMES.values()}


def dtypes_of(*kinds: str) -> frozenset[np.dtype[Any]]:
    """Return all dtypes of these kinds."""
    return frozenset(dtype for dtype, kind in _KINDS.items() if kind in kinds)


def position(i: int) -> str:
    """Return the ordinal of an operand for messages: `"second"` for 1."""
    return _POSITIONS[i] if i < len(_POSITIONS) else f"{i + 1}th"


def numpy_name(name: str) -> str | None:
    """Return the `corejax.numpy` function that promotes and broadcasts, for the advice in a message."""
    public = NUMPY_NAMES.get(name, name)
    namespace = None if name in _LAX_ONLY else exported("numpy")
    return f"corejax.numpy.{public}" if public in getattr(namespace, "__all__", ()) else None


def check_kind(name: str, aval: ShapedArray, accepts: Kinds, operand: str = "") -> None:
    """Refuse an operand of a dtype that a primitive does not accept.

    Args:
        name: the primitive, for the message.
        aval: the operand's type.
        accepts: the kinds of dtypes that the primitive accepts.
        operand: which operand, for primitives with several ("second").

    Raises:
        TypeError: the dtype is of another kind.
    """
    if kind_of(aval.dtype) not in accepts:
        which = f" ({operand} operand)" if operand else ""
        advice = f"Convert the operand first, for example x.astype({_suitable(accepts)!r})"
        if dtypes.is_complex(aval.dtype) and "float" in accepts:
            advice = "Take its real part, imaginary part or absolute value first: x.real, x.imag, abs(x)"
        raise TypeError(f"{name} does not accept dtype {aval.dtype.name}{which}; expects {_PHRASES[accepts]}. {advice}")


def _suitable(accepts: Kinds) -> str:
    for kind, name in (("float", "float32"), ("integer", "int32"), ("complex", "complex64")):
        if kind in accepts:
            return name
    return "bool"


def check_equal_dtypes(name: str, avals: tuple[ShapedArray, ...], first: int = 0) -> None:
    """Refuse operands of unequal dtypes.

    Args:
        name: the primitive, for the message.
        avals: types of the operands that have to agree.
        first: position of the first of them among all operands.

    Raises:
        TypeError: two dtypes differ; the message says which operands, and how to convert.
    """
    for i, aval in enumerate(avals[1:], 1):
        if aval.dtype != avals[0].dtype:
            better = numpy_name(name)
            advice = f", or call {better}, which promotes them" if better else ""
            raise TypeError(
                f"{name} requires arguments to have the same dtypes, got {avals[0].dtype.name} ({position(first)}) and "
                f"{aval.dtype.name} ({position(first + i)}). Convert one, for example "
                f"y.astype({avals[0].dtype.name!r}){advice}"
            )


def joint_shape(name: str, avals: tuple[ShapedArray, ...]) -> tuple[int, ...]:
    """Return the shape of an elementwise result: the shape of the operands that are not scalars.

    Raises:
        TypeError: two such operands have different shapes; the message says which.
    """
    shape: tuple[int, ...] = ()
    owner = 0
    for i, aval in enumerate(avals):
        if aval.ndim and not shape:
            shape, owner = aval.shape, i
        elif aval.ndim and aval.shape != shape:
            better = numpy_name(name)
            advice = f", or call {better}, which broadcasts" if better else ""
            raise TypeError(
                f"{name}: operands have shapes {shape} ({position(owner)}) and {aval.shape} ({position(i)}); "
                f"they have to be equal, unless one of them is a scalar's. Broadcast with broadcast_in_dim{advice}"
            )
    return shape


def elementwise(
    name: str, operands: int, accepts: Kinds, result: Callable[[np.dtype[Any]], np.dtype[Any]] | None = None
) -> Callable[..., ShapedArray]:
    """Return the abstract-eval rule of an elementwise primitive.

    Args:
        name: the primitive, for messages.
        operands: the number of operands.
        accepts: the kinds of dtypes that it accepts.
        result: maps the operands' dtype to the dtype of the result; by default it is the same, and weakly typed if all
            operands are.

    Returns:
        The rule. It raises TypeError for another number of operands, a dtype of another kind, unequal dtypes and
        unequal shapes.
    """

    @takes(name, operands)
    def rule(*avals: ShapedArray, **params: Any) -> ShapedArray:
        check_equal_dtypes(name, avals)
        for i, aval in enumerate(avals):
            check_kind(name, aval, accepts, position(i) if len(avals) > 1 else "")
        shape = joint_shape(name, avals)
        dtype = avals[0].dtype
        weak = all(aval.weak_type for aval in avals)
        if result is None:
            return ShapedArray(shape, dtype, weak)
        out = result(dtype)
        return ShapedArray(shape, out, weak and kind_of(out) != "bool")

    rule.__name__ = f"{name}_abstract_eval"
    return rule


def to_bool(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return bool, the result dtype of comparisons."""
    return dtypes.bool_
