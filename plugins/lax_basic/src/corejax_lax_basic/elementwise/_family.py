"""Tables of elementwise primitives: the constructors of a row, and helpers that the rules of the rows share.

    sin, sin_p = unary("sin", np.sin, INEXACT, "sine", tangents(lambda t, x: mul(cos(x), t)), "Compute the sine.")

A row defines the public function and the primitive with all of its rules. `translations` reads `STABLEHLO`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import numpy as np

from corejax.extend import Array, Primitive, ShapedArray, defbroadcasting, defvectorized, get_aval, impl_rules
from corejax_lax_basic import _speed
from corejax_lax_basic._base import by_name
from corejax_lax_basic._base.accuracy import checked_accuracy
from corejax_lax_basic._base.derivatives import Derivative, Function
from corejax_lax_basic._base.prepared import prepared_flag
from corejax_lax_basic._base.rows import defined
from corejax_lax_basic._base.type_rules import Kinds, elementwise
from corejax_lax_basic._promotion import joined_operands
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim

__corejax_registers_for_caller__ = True  # a row's provenance is its own line, not one of this file

# Primitives that are a single StableHLO operation, and the name of the operation.
STABLEHLO: dict[Primitive, str] = {}

# StableHLO operations that do not round, so that NumPy computes the same bits.
EXACT = {
    *("abs", "and", "ceil", "complex", "floor", "imag", "maximum", "minimum", "negate", "not", "or", "real", "select"),
    *("shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "xor"),
}


class RowOptions(TypedDict, total=False):
    """The optional arguments of `_primitive`, which every row accepts."""

    function: str
    result: Callable[[np.dtype[Any]], np.dtype[Any]] | None
    abstract_eval: Function | None
    linear_in: tuple[int, ...]
    transpose: Function | None
    exact: bool


# -- rows ----------------------------------------------------------------------------------------------------------


def unary(
    name: str,
    impl: Function,
    accepts: Kinds,
    stablehlo: str | None,
    derivative: Derivative,
    doc: str,
    *,
    accuracy: bool = False,
    **more: Unpack[RowOptions],
) -> tuple[Function, Primitive]:
    """Define a function of one operand and its primitive: a row in the table of its family.

    Args:
        name: name of the primitive.
        impl: its impl rule, often a NumPy function.
        accepts: the kinds of dtypes that it accepts.
        stablehlo: the StableHLO operation that it lowers to; None if `translations` has a rule for it.
        derivative: `tangents(...)`, `tangents_with_result(...)`, `linear(...)`, `jvp_rule(...)`, or `defzero`.
        doc: docstring of the function and the primitive.
        accuracy: whether the function takes the keyword `accuracy`. If a caller passes it, it becomes a param of the
            primitive, which impl and derivative then receive.
        more: arguments of `_primitive`.

    Returns:
        The function and the primitive.
    """
    primitive = _primitive(name, 1, impl, accepts, stablehlo, derivative, doc, **more)

    def function(x: Any) -> Any:
        return primitive.bind(x)

    def accurate(x: Any, *, accuracy: Any = None) -> Any:
        if accuracy is None:
            return primitive.bind(x)
        return primitive.bind(x, accuracy=checked_accuracy(name, accuracy))

    return defined(accurate if accuracy else function, primitive, more.get("function", ""))


def binary(
    name: str,
    impl: Function,
    accepts: Kinds,
    stablehlo: str | None,
    derivative: Derivative,
    doc: str,
    written: Function | None = None,
    *,
    out_dtype: bool = False,
    **more: Unpack[RowOptions],
) -> tuple[Function, Primitive]:
    """Define a function of two operands, as `unary`; a scalar operand takes the dtype of the array beside it.

    Pass the function as `written` (in terms of `bind_joined`) if its arguments have other names than `x` and `y`. With
    `out_dtype=True` the function takes a dtype and converts its operands to it.
    """
    primitive = _primitive(name, 2, impl, accepts, stablehlo, derivative, doc, **more)

    def function(x: Any, y: Any) -> Any:
        if getattr(x, "aval", None) is not getattr(y, "aval", x):  # as in `bind_joined`, one call less
            x, y = joined_operands(x, y)
        return primitive.bind(x, y)

    def converting(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
        if out_dtype is not None:
            x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
        elif getattr(x, "aval", None) is not getattr(y, "aval", x):
            x, y = joined_operands(x, y)
        return primitive.bind(x, y)

    return defined(written or (converting if out_dtype else function), primitive, more.get("function", ""))


def bind_joined(primitive: Primitive, x: Any, y: Any) -> Any:
    """Apply a primitive to two operands; a scalar takes the dtype of the other operand."""
    if getattr(x, "aval", None) is not getattr(y, "aval", x):
        x, y = joined_operands(x, y)
    return primitive.bind(x, y)


def _primitive(
    name: str,
    operands: int,
    impl: Function,
    accepts: Kinds,
    stablehlo: str | None,
    derivative: Derivative,
    doc: str,
    *,
    function: str = "",
    result: Callable[[np.dtype[Any]], np.dtype[Any]] | None = None,
    abstract_eval: Function | None = None,
    linear_in: tuple[int, ...] = (),
    transpose: Function | None = None,
    exact: bool = False,
) -> Primitive:
    """Define the primitive of a row.

    Args:
        name: as in `unary`, as are `impl`, `accepts`, `stablehlo`, `derivative` and `doc`.
        operands: the number of operands.
        impl: see `name`.
        accepts: see `name`.
        stablehlo: see `name`.
        derivative: see `name`.
        doc: see `name`.
        function: name of the public function, if it differs from the primitive's.
        result: maps the operands' dtype to the dtype of the result; by default they are the same.
        abstract_eval: the type rule, if it is not the common one.
        linear_in: positions of the operands in which the primitive is linear with the others held fixed.
        transpose: the transpose rule, if `derivative` does not register one.
        exact: whether nothing is rounded, so that all backends compute the same bits; known for the names in `EXACT`.
    """
    tags = ["elementwise"]
    if name in _speed.CHEAP:
        tags.append("cheap")
    if exact or stablehlo in EXACT:
        tags.append("exact")
    primitive = Primitive(
        name,
        abstract_eval=abstract_eval or elementwise(name, operands, accepts, result),
        transpose=transpose,
        linear_in=linear_in,
        tags=tags,
        doc=doc,
    )
    impl_rules.register(primitive, impl, large=_speed.elementwise(name), **prepared_flag(impl))
    (defvectorized if operands == 1 else defbroadcasting)(primitive)
    derivative(primitive)
    if stablehlo is not None:
        STABLEHLO[primitive] = stablehlo
    return primitive


# -- for rules -----------------------------------------------------------------------------------------------------


@functools.cache
def _scalar(dtype: np.dtype[Any], value: float) -> Array:
    return Array(np.array(value, dtype))


def constant(x: Any, value: float) -> Array:
    """Return a scalar of the dtype of `x`."""
    return _scalar(get_aval(x).dtype, value)


def spread(tangent: Any, out: Any) -> Any:
    """Broadcast the tangent of a scalar operand to the shape of the result; return any other tangent unchanged."""
    shape = get_aval(out).shape
    return tangent if get_aval(tangent).shape == shape else broadcast_in_dim(tangent, shape, ())


def unbroadcast(aval: ShapedArray, ct: Any) -> Any:
    """Return the cotangent of an operand: summed if the operand was a scalar beside an array."""
    if getattr(ct, "aval", None) is aval:
        return ct
    shape = get_aval(ct).shape
    return ct if shape == aval.shape else by_name.reduce_sum(ct, tuple(range(len(shape))))
