"""Tables of elementwise primitives: what a row says, and what rules of such primitives share.

    sin, sin_p = unary("sin", np.sin, INEXACT, "sine", tangents(lambda t, x: mul(cos(x), t)), "Sine of radians.")

A row gives the public function and the primitive, with all of its rules. `translations` reads `STABLEHLO`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Array, Primitive, defbroadcasting, defvectorized, get_aval, impl_rules
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

# Primitives that are one StableHLO operation, and which.
STABLEHLO: dict[Primitive, str] = {}

# Those that do not round: NumPy gives the same bits.
EXACT = {
    *("abs", "and", "ceil", "complex", "floor", "imag", "maximum", "minimum", "negate", "not", "or", "real", "select"),
    *("shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "xor"),
}

# -- rows ----------------------------------------------------------------------------------------------------------


def unary(
    name: str, impl: Function, accepts: Kinds, stablehlo: str | None, derivative: Derivative, doc: str, **more: Any
) -> tuple[Function, Primitive]:
    """A function of one operand: a row in the table of its family.

    Args:
        name: the primitive.
        impl: its impl rule, often a NumPy function.
        accepts: kinds of dtype that it takes.
        stablehlo: the StableHLO operation that it is; None where `translations` has a rule for it.
        derivative: `tangents(...)`, `tangents_with_result(...)`, `linear(...)`, `jvp_rule(...)`, or `defzero`.
        doc: docstring of the function and the primitive.
        more: see `_primitive`; and `accuracy=True` for a function that takes one, a param of the primitive where it
            is given, which impl and derivative take too.

    Returns:
        The function and the primitive.
    """
    with_accuracy = more.pop("accuracy", False)
    primitive = _primitive(name, 1, impl, accepts, stablehlo, derivative, doc, **more)

    def function(x: Any) -> Any:
        return primitive.bind(x)

    def accurate(x: Any, *, accuracy: Any = None) -> Any:
        if accuracy is None:
            return primitive.bind(x)
        return primitive.bind(x, accuracy=checked_accuracy(name, accuracy))

    return defined(accurate if with_accuracy else function, primitive, more.get("function", ""))


def binary(
    name: str,
    impl: Function,
    accepts: Kinds,
    stablehlo: str | None,
    derivative: Derivative,
    doc: str,
    written: Function | None = None,
    **more: Any,
) -> tuple[Function, Primitive]:
    """As `unary`, a function of two operands, of which a scalar yields to the other one.

    The function is `written` (in terms of `bind_joined`) if its arguments have other names than `x` and `y`. With
    `out_dtype=True` the function takes a dtype, which the operands are converted to.
    """
    with_out_dtype = more.pop("out_dtype", False)
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

    return defined(written or (converting if with_out_dtype else function), primitive, more.get("function", ""))


def bind_joined(primitive: Primitive, x: Any, y: Any) -> Any:
    """Apply a primitive to two operands, of which a scalar yields to the other one."""
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
    """The primitive of a row.

    Args:
        name, operands, impl, accepts, stablehlo, derivative, doc: as in `unary`.
        function: name of the public function, where that is not the primitive's.
        result: dtype of the result by that of the operands; by default the same.
        abstract_eval: the type rule, where it is not the common one.
        linear_in: positions of the operands in which it is linear, the others held.
        transpose: the transpose rule, where `derivative` does not have it.
        exact: whether nothing is rounded, so that everybody gives the same bits; of some of StableHLO it is known.
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
    """A scalar of the dtype of `x`."""
    return _scalar(get_aval(x).dtype, value)


def spread(tangent: Any, out: Any) -> Any:
    """The tangent of a scalar operand repeated over the shape of the result; any other as it is."""
    shape = get_aval(out).shape
    return tangent if get_aval(tangent).shape == shape else broadcast_in_dim(tangent, shape, ())


def unbroadcast(aval: Any, ct: Any) -> Any:
    """The cotangent of an operand: summed where a scalar was mixed with an array."""
    if getattr(ct, "aval", None) is aval:
        return ct
    shape = get_aval(ct).shape
    return ct if shape == aval.shape else by_name.reduce_sum(ct, tuple(range(len(shape))))
