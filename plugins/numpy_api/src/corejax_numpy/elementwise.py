"""Element-wise functions with NumPy's promotion and broadcasting: most of NumPy's ufuncs, `where` and `clip`.

Arguments are arrays, tracers, NumPy arrays and Python scalars, which are weakly typed. A function of floating-point
numbers converts integers and booleans to floating point first.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

from corejax.extend import Array, Primitive, as_array, dtypes, get_aval, remembered
from corejax_lax_basic import lax
from corejax_numpy._speed import FEW_INTEGERS
from corejax_numpy.arguments import (
    array_argument,
    like,
    no_out_or_where,
    number_argument,
    operand,
    promote,
    promote_dtypes,
    to_bool,
)

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]
Dtypes = frozenset[Any]
F = TypeVar("F", bound=Callable[..., Any])

# -- families ----------------------------------------------------------------------------------------------------
#
# Each family has a fast path and a general one. If the operands need no conversion (arrays of one dtype, or an array
# and a Python scalar of its kind), the function binds its primitive at once, after two or three attribute lookups.
# Most eager calls take this path. All other operands go through `promote` and `broadcast_operands`, which raise the
# errors, so that the fast path never has to.

_NONE: Dtypes = frozenset()
_DISCRETE, _FLOATS, _COMPLEX = lax.dtypes_of("bool", "integer"), lax.dtypes_of("float"), lax.dtypes_of("complex")
_UNSIGNED, _NUMBERS = frozenset(filter(dtypes.is_unsigned, _DISCRETE)), lax.dtypes_of("integer", "float", "complex")
_INEXACT, _ORDERED, _ANY = _FLOATS | _COMPLEX, _DISCRETE | _FLOATS, _DISCRETE | _FLOATS | _COMPLEX
# Made on the first call with integers, not when this module is imported.
_remembered = functools.cache(remembered)


def _public(function: F, name: str, doc: str) -> F:
    """Name a function of `corejax.numpy`, so that it is unpickled from there, whichever module defines it."""
    lax.named(function, name, doc).__module__ = "corejax.numpy"
    return function


def inexact_function(name: str, apply: Unary | Primitive, doc: str) -> Unary:
    """Return a function of floating-point and complex numbers.

    Args:
        name: the function's name.
        apply: a primitive or function that computes the result for an array of inexact dtype.
        doc: the function's docstring.
    """
    apply = apply.bind if isinstance(apply, Primitive) else apply

    def general(x: Any) -> Any:
        return apply(promote_dtypes(name, x, inexact=True)[0])

    def function(x: Any, /) -> Any:
        aval: Any = getattr(x, "aval", None)
        if aval is not None and aval.dtype in _INEXACT:
            return apply(x)
        # The conversion dominates the cost of larger arrays, so they gain nothing from a cached program.
        if type(x) is Array and aval.size <= FEW_INTEGERS:
            return _remembered(general)(x)
        return general(x)

    return _public(function, name, doc)


def _binary(name: str, general: Binary, primitive: Primitive, direct: Dtypes, doc: str) -> Binary:
    """Return a function of two arguments with a fast path.

    Args:
        name: the function's name.
        general: the function for arguments of any kind.
        primitive: the primitive for two operands of one dtype, or an array and a Python scalar that takes its dtype.
        direct: the dtypes for which the primitive alone computes the result.
        doc: the function's docstring.
    """
    bind = primitive.bind

    @remembered
    def broadcast(x: Any, y: Any) -> Any:
        return primitive.bind(*lax.broadcast_operands(x, y, name=name))

    def function(x: Any, y: Any, /, *, out: Any = None, where: Any = None) -> Any:
        if out is not None or where is not None:
            no_out_or_where(name, out, where)
        aval = getattr(x, "aval", None)
        if aval is not None and aval.dtype in direct:
            other = getattr(y, "aval", None)
            if other is aval:
                return bind(x, y)
            if other is None:
                if (make := lax.yielding_scalar(aval, type(y))) is not None:
                    try:
                        scalar = make(y)
                    except OverflowError:
                        return general(x, y)
                    return bind(x, scalar)
            elif other.dtype is aval.dtype:
                if not aval.shape or not other.shape or other.shape == aval.shape:
                    return bind(x, y)
                return broadcast(x, y)
        return general(x, y)

    return _public(function, name, doc)


def _operator(name: str, apply: Binary, primitive: Primitive, direct: Dtypes, doc: str) -> Binary:
    """Return the function that does what a Python operator does between arrays."""

    def general(x: Any, y: Any) -> Any:
        x, y = operand(name, x), operand(name, y, 1)
        if lax.is_python_scalar(x) and lax.is_python_scalar(y):
            x = as_array(x)
        return apply(x, y)

    return _binary(name, general, primitive, direct, doc)


def promoted_function(name: str, apply: Binary | Primitive, doc: str, inexact: bool = False) -> Binary:
    """Return a function of two operands that are promoted to one dtype and broadcast to one shape first.

    Args:
        name: the function's name.
        apply: a primitive or function that computes the result for the promoted operands.
        doc: the function's docstring.
        inexact: whether booleans and integers are converted to floating point.
    """
    bind = apply.bind if isinstance(apply, Primitive) else apply

    def general(x: Any, y: Any, /) -> Any:
        return bind(*promote(name, x, y, inexact=inexact))

    if not isinstance(apply, Primitive):
        lax.named(general, name, doc)
        return general
    return _binary(name, general, apply, _INEXACT if inexact else _ANY, doc)


def _logical(name: str, primitive: Primitive, doc: str) -> Binary:
    """Return a binary function of truth values: an element is true if it differs from zero."""

    def general(x: Any, y: Any) -> Any:
        x, y = promote_dtypes(name, x, y)
        return primitive.bind(*lax.broadcast_operands(to_bool(x), to_bool(y), name=name))

    return _binary(name, general, primitive, frozenset({dtypes.bool_}), doc)


def _rem(x: Any, y: Any) -> Any:
    if dtypes.is_bool(x.aval.dtype):  # computed as integers
        x, y = (lax.convert_element_type(v, dtypes.default_int_dtype()) for v in (x, y))
    rest = lax.rem(x, y)
    return rest if dtypes.is_inexact(x.aval.dtype) else where(lax.eq(y, like(y, 0)), like(rest, 0), rest)


def rounding_function(name: str, apply: Unary, doc: str) -> Unary:
    """Return a function of floating-point numbers that returns integers and booleans unchanged."""

    def function(x: Any, /) -> Any:
        aval = getattr(x, "aval", None)
        if aval is not None and aval.dtype in _INEXACT:
            return apply(x)
        x = number_argument(name, x)
        return apply(x) if dtypes.is_inexact(x.dtype) else x

    lax.named(function, name, doc)
    return function


def _scaled(x: Any, scale: Binary, factor: float) -> Any:
    """Scale the parts of a complex number one by one: a complex factor would turn an infinite part into NaN."""
    parts = (lax.real(x), lax.imag(x)) if dtypes.is_complex(x.aval.dtype) else (x,)
    scaled = [scale(part, like(part, factor)) for part in parts]
    return lax.complex(*scaled) if len(scaled) > 1 else scaled[0]


def _logarithm(base: float) -> Unary:
    return lambda x: _scaled(lax.log(x), lax.div, math.log(base))


_REMAINDER = "Compute `x % y`, with the sign of `y`; 0 if an integer `y` is 0."
# fmt: off
sin      = inexact_function("sin",      lax.sin_p,      "Compute the sine of `x`, in radians.")
cos      = inexact_function("cos",      lax.cos_p,      "Compute the cosine of `x`, in radians.")
tan      = inexact_function("tan",      lax.tan_p,      "Compute the tangent of `x`, in radians.")
tanh     = inexact_function("tanh",     lax.tanh_p,     "Compute the hyperbolic tangent.")
exp      = inexact_function("exp",      lax.exp_p,      "Compute the exponential.")
expm1    = inexact_function("expm1",    lax.expm1_p,    "Compute `exp(x) - 1`, accurately near 0.")
log      = inexact_function("log",      lax.log_p,      "Compute the natural logarithm; NaN below 0.")
log2     = inexact_function("log2",     _logarithm(2),  "Compute the logarithm to base 2; NaN below 0.")
log10    = inexact_function("log10",    _logarithm(10), "Compute the logarithm to base 10; NaN below 0.")
log1p    = inexact_function("log1p",    lax.log1p_p,    "Compute `log(1 + x)`, accurately near 0.")
sqrt     = inexact_function("sqrt",     lax.sqrt_p,     "Compute the square root; NaN below 0.")
reciprocal = inexact_function("reciprocal", lambda x: lax.integer_pow(x, -1), "Compute `1 / x`.")
degrees  = inexact_function("degrees",  lambda x: lax.mul(x, like(x, 180 / math.pi)), "Convert radians to degrees.")
radians  = inexact_function("radians",  lambda x: lax.mul(x, like(x, math.pi / 180)), "Convert degrees to radians.")

floor    = rounding_function("floor",    lax.floor,    "Round down to the largest integer `<= x`, in the dtype of `x`.")
ceil     = rounding_function("ceil",     lax.ceil,     "Round up to the smallest integer `>= x`, in the dtype of `x`.")

add = _operator("add", operator.add, lax.add_p, _NUMBERS, "Compute `x + y`; for booleans, logical or.")
subtract = _operator("subtract", operator.sub, lax.sub_p, _NUMBERS, "Compute `x - y`. Raises TypeError for booleans.")
multiply = _operator("multiply", operator.mul, lax.mul_p, _NUMBERS, "Compute `x * y`; for booleans, logical and.")
divide = _operator("divide", operator.truediv, lax.div_p, _INEXACT, "Compute `x / y`, floating also for integers.")
floor_divide = _operator("floor_divide", operator.floordiv, lax.div_p, _UNSIGNED, "Compute `x // y`, rounded down.")
remainder = _operator("remainder", operator.mod, lax.rem_p, _NONE, _REMAINDER)
power = _operator("power", operator.pow, lax.pow_p, _NONE, "Compute `x ** y`; an int exponent is static.")
bitwise_and = _operator("bitwise_and", operator.and_, lax.and_p, _DISCRETE, "Compute `x & y` for integers or booleans.")
bitwise_or = _operator("bitwise_or", operator.or_, lax.or_p, _DISCRETE, "Compute `x | y` for integers or booleans.")
bitwise_xor = _operator("bitwise_xor", operator.xor, lax.xor_p, _DISCRETE, "Compute `x ^ y` for integers or booleans.")
equal = _operator("equal", operator.eq, lax.eq_p, _ANY, "Compute `x == y`; NaN is equal to nothing.")
not_equal = _operator("not_equal", operator.ne, lax.ne_p, _ANY, "Compute `x != y`; NaN differs from everything.")
less = _operator("less", operator.lt, lax.lt_p, _ORDERED, "Compute `x < y`; False for NaN.")
less_equal = _operator("less_equal", operator.le, lax.le_p, _ORDERED, "Compute `x <= y`; False for NaN.")
greater = _operator("greater", operator.gt, lax.gt_p, _ORDERED, "Compute `x > y`; False for NaN.")
greater_equal = _operator("greater_equal", operator.ge, lax.ge_p, _ORDERED, "Compute `x >= y`; False for NaN.")

maximum     = promoted_function("maximum",     lax.max_p, "Return the larger of `x` and `y`; NaN if either is NaN.")
minimum     = promoted_function("minimum",     lax.min_p, "Return the smaller of `x` and `y`; NaN if either is NaN.")
_FMOD = "Compute the remainder of truncated division, with the sign of `x`; 0 if an integer `y` is 0."
fmod = promoted_function("fmod", _rem, _FMOD)
float_power = promoted_function("float_power", lax.pow_p, "Compute `x ** y` in floating point.", inexact=True)

logical_and = _logical("logical_and", lax.and_p, "Test whether `x` and `y` are both nonzero.")
logical_or  = _logical("logical_or",  lax.or_p,  "Test whether `x` or `y` is nonzero.")
logical_xor = _logical("logical_xor", lax.xor_p, "Test whether exactly one of `x` and `y` is nonzero.")
# fmt: on


def trunc(x: Any) -> Any:
    """Round towards zero, in the dtype of `x`; integers and booleans are returned unchanged."""
    x = number_argument("trunc", x)
    return where(x < 0, lax.ceil(x), lax.floor(x)) if dtypes.is_inexact(x.dtype) else x


def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """Return the pair `(x // y, x % y)`."""
    return floor_divide(x, y), remainder(x, y)


# -- one argument, any dtype -------------------------------------------------------------------------------------


def _array_function(name: str, apply: Unary, doc: str) -> Unary:
    """Return a function that passes its argument to `apply` as an array."""

    def function(x: Any, /) -> Any:
        return apply(array_argument(name, x))

    lax.named(function, name, doc)
    return function


_REAL_PART = "Return the real part; a real array is returned unchanged."
_IMAGINARY_PART = "Return the imaginary part; zeros for a real array."
_CONJUGATE = "Return the complex conjugate; a real array is returned unchanged."
_SIGN = "Return the sign: -1, 0 or 1; for a complex number `x / abs(x)`. Raises TypeError for booleans."
# fmt: off
positive       = _array_function("positive",       lambda x: x, "Return `x` as an array.")
absolute       = _array_function("absolute",       abs, "Compute the absolute value; the modulus of a complex number.")
sign           = _array_function("sign",           lax.sign, _SIGN)
real           = _array_function("real",           operator.attrgetter("real"), _REAL_PART)
imag           = _array_function("imag",           operator.attrgetter("imag"), _IMAGINARY_PART)
conjugate      = _array_function("conjugate",      operator.methodcaller("conj"), _CONJUGATE)
isnan          = _array_function("isnan",          lambda x: lax.ne_p.bind(x, x), "Test whether elements are NaN.")
logical_not    = _array_function("logical_not",    lambda x: lax.bitwise_not(to_bool(x)), "Test whether `x` is zero.")
bitwise_invert = _array_function("bitwise_invert", operator.invert, "Compute `~x` for integers or booleans.")
# fmt: on


def negative(x: Any, /, *, out: Any = None, where: Any = None) -> Any:
    """Compute `-x`. Raises TypeError for booleans."""
    no_out_or_where("negative", out, where)
    return -array_argument("negative", x)


def square(x: Any, /) -> Any:
    """Compute `x * x`."""
    x = array_argument("square", x)
    return lax.square(lax.convert_element_type(x, dtypes.default_int_dtype()) if dtypes.is_bool(x.dtype) else x)


def isinf(x: Any, /) -> Any:
    """Test whether elements are infinite; a complex number is infinite if either part is."""
    x = array_argument("isinf", x)
    if not dtypes.is_inexact(x.dtype):
        return _constant(x, False)
    if dtypes.is_complex(x.dtype):
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    size = abs(x)
    return lax.eq(size, like(size, math.inf))


def isfinite(x: Any, /) -> Any:
    """Test whether elements are neither infinite nor NaN."""
    x = array_argument("isfinite", x)
    if not dtypes.is_inexact(x.dtype):
        return _constant(x, True)
    if dtypes.is_complex(x.dtype):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def _constant(x: Any, value: bool) -> Any:
    return lax.broadcast_in_dim(as_array(value), x.shape, ())


# -- several arguments -------------------------------------------------------------------------------------------


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return `x` where `condition` is nonzero, else `y`; all three broadcast together.

    Args:
        condition: a boolean array; elements of another dtype count as true if they differ from zero.
        x: values to take where the condition is true.
        y: values to take elsewhere.

    Returns:
        An array of the dtype that `x` and `y` promote to.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    aval, condition_aval = getattr(x, "aval", None), getattr(condition, "aval", None)
    if condition_aval is None or condition_aval.dtype is not dtypes.bool_:
        condition = to_bool(array_argument("where", condition))
        condition_aval = condition.aval
    if getattr(y, "aval", None) is not aval or aval is None:
        x, y = promote_dtypes("where", x, y)
    elif condition_aval.shape == aval.shape:
        return lax.select_n_p.bind(condition, y, x)
    condition, x, y = lax.broadcast_operands(condition, x, y, name="where")
    return lax.select_n_p.bind(condition, y, x)


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Any:
    """Limit the elements to an interval: `minimum(maximum(arr, min), max)`.

    Args:
        arr: the array.
        min: lower bound. None, or an integer below the range of the dtype, leaves this side open.
        max: upper bound, which wins if it is less than `min`. None, or an integer above the range of the dtype, leaves
            this side open.

    Raises:
        ValueError: an argument is complex, because complex numbers have no order; or `arr` is missing.
    """
    if arr is None:
        raise ValueError("clip: the array argument is missing")
    out = array_argument("clip", arr)
    if out.aval.dtype in _COMPLEX or type(min) not in _REAL or type(max) not in _REAL:
        _check_order(out, min, max)
    if min is not None and lax.beyond(min, out.aval.dtype) >= 0:
        out = maximum(out, min)
    return out if max is None or lax.beyond(max, out.aval.dtype) > 0 else minimum(out, max)


_REAL = frozenset({type(None), int, float})


def _check_order(*xs: Any) -> None:
    """Raise ValueError if an argument is complex, because complex numbers have no order."""
    for position, x in enumerate(xs):
        if x is not None and dtypes.is_complex(get_aval(operand("clip", x, position)).dtype):
            raise ValueError("clip: Complex values have no ordering and cannot be clipped; clip their parts")


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Test whether `abs(a - b) <= atol + rtol * abs(b)`, or both are equal (or NaN, if `equal_nan`).

    An infinity is close to itself only. Keys are close if they are equal.
    """
    a, b = promote("isclose", a, b)
    if dtypes.is_extended(a.dtype):
        return lax.eq(a, b)
    rtol, atol = operand("isclose", rtol, "rtol"), operand("isclose", atol, "atol")
    if not dtypes.is_inexact(a.dtype):
        a, b = promote("isclose", a, b, inexact=True)
    close = less_equal(abs(a - b), atol + rtol * abs(b))
    out = logical_or(logical_and(close, logical_and(isfinite(a), isfinite(b))), lax.eq(a, b))
    return logical_or(out, logical_and(isnan(a), isnan(b))) if equal_nan else out
