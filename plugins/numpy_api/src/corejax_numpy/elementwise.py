"""Functions of elements, with NumPy's promotion and broadcasting: what NumPy calls ufuncs, `where` and `clip`.

Arguments are arrays, tracers, NumPy arrays and Python scalars, which are weakly typed. A function of floating-point
numbers makes integers and booleans floating first.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

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

# -- families ----------------------------------------------------------------------------------------------------
#
# A function whose operands need no conversion binds its primitive at once: that is the path of eager calls.


_NONE: Dtypes = frozenset()
_DISCRETE, _FLOATS, _COMPLEX = lax.dtypes_of("bool", "integer"), lax.dtypes_of("float"), lax.dtypes_of("complex")
_UNSIGNED, _NUMBERS = frozenset(filter(dtypes.is_unsigned, _DISCRETE)), lax.dtypes_of("integer", "float", "complex")
_INEXACT, _ORDERED, _ANY = _FLOATS | _COMPLEX, _DISCRETE | _FLOATS, _DISCRETE | _FLOATS | _COMPLEX
_remembered = functools.cache(remembered)  # when it is needed


def _public(function: Any, name: str, doc: str) -> Any:
    """Name a function of `corejax.numpy`, where unpickling finds it whatever module has its row."""
    lax.named(function, name, doc).__module__ = "corejax.numpy"
    return function


def inexact_function(name: str, apply: Unary | Primitive, doc: str) -> Unary:
    """A function of floating-point and complex numbers.

    Args:
        name: of the function.
        apply: what it does to an array of these: a primitive, or a function.
        doc: its docstring.
    """
    apply = apply.bind if isinstance(apply, Primitive) else apply

    def general(x: Any) -> Any:
        return apply(promote_dtypes(name, x, inexact=True)[0])

    def function(x: Any, /) -> Any:
        aval = getattr(x, "aval", None)
        if aval is not None and aval.dtype in _INEXACT:
            return apply(x)
        if type(x) is Array and aval.size <= FEW_INTEGERS:  # of more, converting them is what takes long
            return _remembered(general)(x)
        return general(x)

    return _public(function, name, doc)


def _binary(name: str, general: Binary, primitive: Primitive, direct: Dtypes, doc: str) -> Binary:
    """A function of two arguments.

    Args:
        name: of the function.
        general: what it does to any arguments.
        primitive: what it is for operands of one type, and for Python scalars that yield to an array.
        direct: for which dtypes.
        doc: its docstring.
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
    """What Python's operator between arrays does."""

    def general(x: Any, y: Any) -> Any:
        x, y = operand(name, x), operand(name, y, 1)
        if lax.is_python_scalar(x) and lax.is_python_scalar(y):
            x = as_array(x)
        return apply(x, y)

    return _binary(name, general, primitive, direct, doc)


def promoted_function(name: str, apply: Binary | Primitive, doc: str, inexact: bool = False) -> Binary:
    """A function of operands of one dtype and shape, which booleans, integers and so on are converted to.

    Args:
        name: of the function.
        apply: what it does to such operands: a primitive, or a function.
        doc: its docstring.
        inexact: whether booleans and integers become floating.
    """
    bind = apply.bind if isinstance(apply, Primitive) else apply

    def general(x: Any, y: Any) -> Any:
        return bind(*promote(name, x, y, inexact=inexact))

    if not isinstance(apply, Primitive):
        return lax.named(lambda x, y, /: general(x, y), name, doc)
    return _binary(name, general, apply, _INEXACT if inexact else _ANY, doc)


def _logical(name: str, primitive: Primitive, doc: str) -> Binary:
    """A binary operation on truth values: whether elements differ from zero."""

    def general(x: Any, y: Any) -> Any:
        x, y = promote_dtypes(name, x, y)
        return primitive.bind(*lax.broadcast_operands(to_bool(x), to_bool(y), name=name))

    return _binary(name, general, primitive, frozenset({dtypes.bool_}), doc)


def _rem(x: Any, y: Any) -> Any:
    if dtypes.is_bool(x.aval.dtype):  # as of integers
        x, y = (lax.convert_element_type(v, dtypes.default_int_dtype()) for v in (x, y))
    rest = lax.rem(x, y)
    return rest if dtypes.is_inexact(x.aval.dtype) else where(lax.eq(y, like(y, 0)), like(rest, 0), rest)


def rounding_function(name: str, apply: Unary, doc: str) -> Unary:
    """A function of floating-point numbers; integers and booleans are as they should be."""

    def function(x: Any, /) -> Any:
        aval = getattr(x, "aval", None)
        if aval is not None and aval.dtype in _INEXACT:
            return apply(x)
        x = number_argument(name, x)
        return apply(x) if dtypes.is_inexact(x.dtype) else x

    return lax.named(function, name, doc)


def _scaled(x: Any, scale: Binary, factor: float) -> Any:
    """Part by part for complex numbers: an infinite one scaled by a complex constant would be NaN."""
    parts = (lax.real(x), lax.imag(x)) if dtypes.is_complex(x.aval.dtype) else (x,)
    scaled = [scale(part, like(part, factor)) for part in parts]
    return lax.complex(*scaled) if len(scaled) > 1 else scaled[0]


def _logarithm(base: float) -> Unary:
    return lambda x: _scaled(lax.log(x), lax.div, math.log(base))


# fmt: off
sin      = inexact_function("sin",      lax.sin_p,      "Sine, of radians.")
cos      = inexact_function("cos",      lax.cos_p,      "Cosine, of radians.")
tan      = inexact_function("tan",      lax.tan_p,      "Tangent, of radians.")
tanh     = inexact_function("tanh",     lax.tanh_p,     "Hyperbolic tangent.")
exp      = inexact_function("exp",      lax.exp_p,      "Exponential.")
expm1    = inexact_function("expm1",    lax.expm1_p,    "`exp(x) - 1`, accurate near 0.")
log      = inexact_function("log",      lax.log_p,      "Natural logarithm, NaN below 0.")
log2     = inexact_function("log2",     _logarithm(2),  "Logarithm to base 2, NaN below 0.")
log10    = inexact_function("log10",    _logarithm(10), "Logarithm to base 10, NaN below 0.")
log1p    = inexact_function("log1p",    lax.log1p_p,    "`log(1 + x)`, accurate near 0.")
sqrt     = inexact_function("sqrt",     lax.sqrt_p,     "Square root, NaN below 0.")
reciprocal = inexact_function("reciprocal", lambda x: lax.integer_pow(x, -1), "`1 / x`.")
degrees  = inexact_function("degrees",  lambda x: lax.mul(x, like(x, 180 / math.pi)), "Radians in degrees.")
radians  = inexact_function("radians",  lambda x: lax.mul(x, like(x, math.pi / 180)), "Degrees in radians.")

floor    = rounding_function("floor",    lax.floor,    "The largest integer that is not above `x`, in its dtype.")
ceil     = rounding_function("ceil",     lax.ceil,     "The smallest integer that is not below `x`, in its dtype.")

add = _operator("add", operator.add, lax.add_p, _NUMBERS, "`x + y`; of booleans, whether either is true.")
subtract = _operator("subtract", operator.sub, lax.sub_p, _NUMBERS, "`x - y`. Raises TypeError for booleans.")
multiply = _operator("multiply", operator.mul, lax.mul_p, _NUMBERS, "`x * y`; of booleans, whether both are true.")
divide = _operator("divide", operator.truediv, lax.div_p, _INEXACT, "`x / y`, floating also for integers.")
floor_divide = _operator("floor_divide", operator.floordiv, lax.div_p, _UNSIGNED, "`x // y`, rounded down.")
remainder = _operator("remainder", operator.mod, lax.rem_p, _NONE, "`x % y`, of the sign of `y`; integers: 0 for 0.")
power = _operator("power", operator.pow, lax.pow_p, _NONE, "`x ** y`; a Python int as exponent is static.")
bitwise_and = _operator("bitwise_and", operator.and_, lax.and_p, _DISCRETE, "`x & y`, of integers or booleans.")
bitwise_or = _operator("bitwise_or", operator.or_, lax.or_p, _DISCRETE, "`x | y`, of integers or booleans.")
bitwise_xor = _operator("bitwise_xor", operator.xor, lax.xor_p, _DISCRETE, "`x ^ y`, of integers or booleans.")
equal = _operator("equal", operator.eq, lax.eq_p, _ANY, "Whether `x == y`; NaN equals nothing.")
not_equal = _operator("not_equal", operator.ne, lax.ne_p, _ANY, "Whether `x != y`.")
less = _operator("less", operator.lt, lax.lt_p, _ORDERED, "Whether `x < y`; False for NaN.")
less_equal = _operator("less_equal", operator.le, lax.le_p, _ORDERED, "Whether `x <= y`; False for NaN.")
greater = _operator("greater", operator.gt, lax.gt_p, _ORDERED, "Whether `x > y`; False for NaN.")
greater_equal = _operator("greater_equal", operator.ge, lax.ge_p, _ORDERED, "Whether `x >= y`; False for NaN.")

maximum     = promoted_function("maximum",     lax.max_p, "The larger one of `x` and `y`; NaN where either is.")
minimum     = promoted_function("minimum",     lax.min_p, "The smaller one of `x` and `y`; NaN where either is.")
fmod = promoted_function("fmod", _rem, "Remainder of truncated division, of the sign of `x`; integers: 0 for 0.")
float_power = promoted_function("float_power", lax.pow_p, "`x ** y` in floating point.", inexact=True)

logical_and = _logical("logical_and", lax.and_p, "Whether `x` and `y` are both nonzero.")
logical_or  = _logical("logical_or",  lax.or_p,  "Whether `x` or `y` is nonzero.")
logical_xor = _logical("logical_xor", lax.xor_p, "Whether exactly one of `x` and `y` is nonzero.")
# fmt: on


def trunc(x: Any) -> Any:
    """`x` without its fraction; integers and booleans as they are."""
    x = number_argument("trunc", x)
    return where(x < 0, lax.ceil(x), lax.floor(x)) if dtypes.is_inexact(x.dtype) else x


def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """`(x // y, x % y)`."""
    return floor_divide(x, y), remainder(x, y)


# -- one argument, any dtype -------------------------------------------------------------------------------------


def _of_array(name: str, apply: Unary, doc: str) -> Unary:
    """A function of numbers of any kind, which `apply` gets as an array."""
    return lax.named(lambda x, /: apply(array_argument(name, x)), name, doc)


_SIGN = "-1, 0 or 1; for a complex number `x / abs(x)`. Raises TypeError for booleans."
# fmt: off
positive       = _of_array("positive",       lambda x: x, "`x`.")
absolute       = _of_array("absolute",       abs, "Absolute value; the modulus of a complex number.")
sign           = _of_array("sign",           lax.sign, _SIGN)
real           = _of_array("real",           operator.attrgetter("real"), "Real part; a real array as it is.")
imag           = _of_array("imag",           operator.attrgetter("imag"), "Imaginary part; zeros for a real array.")
conjugate      = _of_array("conjugate",      operator.methodcaller("conj"), "Complex conjugate; a real array as it is.")
isnan          = _of_array("isnan",          lambda x: lax.ne_p.bind(x, x), "Whether elements are NaN.")
logical_not    = _of_array("logical_not",    lambda x: lax.bitwise_not(to_bool(x)), "Whether `x` is zero.")
bitwise_invert = _of_array("bitwise_invert", operator.invert, "`~x`, of integers or booleans.")
# fmt: on


def negative(x: Any, /, *, out: Any = None, where: Any = None) -> Any:
    """`-x`. Raises TypeError for booleans."""
    no_out_or_where("negative", out, where)
    return -array_argument("negative", x)


def square(x: Any, /) -> Any:
    """`x * x`."""
    x = array_argument("square", x)
    return lax.square(lax.convert_element_type(x, dtypes.default_int_dtype()) if dtypes.is_bool(x.dtype) else x)


def isinf(x: Any, /) -> Any:
    """Whether elements are infinite; for complex numbers, either part of them."""
    x = array_argument("isinf", x)
    if not dtypes.is_inexact(x.dtype):
        return _everywhere(x, False)
    if dtypes.is_complex(x.dtype):
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    size = abs(x)
    return lax.eq(size, like(size, math.inf))


def isfinite(x: Any, /) -> Any:
    """Whether elements are neither infinite nor NaN."""
    x = array_argument("isfinite", x)
    if not dtypes.is_inexact(x.dtype):
        return _everywhere(x, True)
    if dtypes.is_complex(x.dtype):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def _everywhere(x: Any, value: bool) -> Any:
    return lax.broadcast_in_dim(as_array(value), x.shape, ())


# -- several arguments -------------------------------------------------------------------------------------------


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` is nonzero, else `y`; all three broadcast together.

    Args:
        condition: a boolean array; elements of another dtype count as true where they differ from zero.
        x: values where it is true.
        y: values elsewhere.

    Returns:
        An array of the dtype that `x` and `y` promote to.

    Raises:
        ValueError: the shapes do not broadcast together.
    """
    aval, which = getattr(x, "aval", None), getattr(condition, "aval", None)
    if which is None or which.dtype is not dtypes.bool_:
        condition = to_bool(array_argument("where", condition))
        which = condition.aval
    if aval is None or getattr(y, "aval", None) is not aval:
        x, y = promote_dtypes("where", x, y)
    elif which.shape == aval.shape:
        return lax.select_n_p.bind(condition, y, x)
    condition, x, y = lax.broadcast_operands(condition, x, y, name="where")
    return lax.select_n_p.bind(condition, y, x)


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Any:
    """Elements limited to an interval: `minimum(maximum(arr, min), max)`.

    Args:
        arr: the array.
        min: lower bound; None leaves the side open, and so does an integer that is less than any of the dtype.
        max: upper bound, which wins where the bounds cross; None and integers as for `min`.

    Raises:
        ValueError: an argument is complex: complex numbers have no order; or there is no array.
    """
    if arr is None:
        raise ValueError("clip: give the array that is to be limited")
    out = array_argument("clip", arr)
    if out.aval.dtype in _COMPLEX or type(min) not in _REAL or type(max) not in _REAL:
        _check_order(out, min, max)
    if min is not None and lax.beyond(min, out.aval.dtype) >= 0:
        out = maximum(out, min)
    return out if max is None or lax.beyond(max, out.aval.dtype) > 0 else minimum(out, max)


_REAL = frozenset({type(None), int, float})


def _check_order(*xs: Any) -> None:
    """Refuse complex numbers, which have none."""
    for position, x in enumerate(xs):
        if x is not None and dtypes.is_complex(get_aval(operand("clip", x, position)).dtype):
            raise ValueError("clip: Complex values have no ordering and cannot be clipped; clip their parts")


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether `abs(a - b) <= atol + rtol * abs(b)`, or both are equal (or NaN, if `equal_nan`).

    Infinities are close to themselves alone, and so are keys.
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
