"""Functions of elements, with NumPy's promotion and broadcasting: what NumPy calls ufuncs, `where` and `clip`.

Arguments are arrays, tracers, NumPy arrays and Python scalars, which are weakly typed. A function of floating-point
numbers makes integers and booleans floating first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from corejax.extend import as_array, dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_argument, documented, like, operand, promote, promote_dtypes, to_bool

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]

# -- families ----------------------------------------------------------------------------------------------------


def _inexact(name: str, apply: Unary, doc: str) -> Unary:
    """A function of floating-point and complex numbers."""

    @documented(name, doc)
    def function(x: Any, /) -> Any:
        return apply(promote_dtypes(name, x, inexact=True)[0])

    return function


def _operator(name: str, apply: Binary, doc: str) -> Binary:
    """What Python's operator between arrays does."""

    @documented(name, doc)
    def function(x: Any, y: Any, /) -> Any:
        x, y = operand(name, x), operand(name, y, 1)
        if lax.is_python_scalar(x) and lax.is_python_scalar(y):
            x = as_array(x)
        return apply(x, y)

    return function


def _promoted(name: str, apply: Binary, doc: str, inexact: bool = False) -> Binary:
    """A primitive between operands of one dtype and shape."""

    @documented(name, doc)
    def function(x: Any, y: Any, /) -> Any:
        return apply(*promote(name, x, y, inexact=inexact))

    return function


def _logical(name: str, apply: Binary, doc: str) -> Binary:
    """A binary operation on truth values: whether elements differ from zero."""

    @documented(name, doc)
    def function(x: Any, y: Any, /) -> Any:
        x, y = array_argument(name, x), array_argument(name, y, 1)
        return apply(*lax.broadcast_operands(to_bool(x), to_bool(y)))

    return function


def _rem(x: Any, y: Any) -> Any:
    if dtypes.is_bool(x.aval.dtype):  # as of integers
        x, y = (lax.convert_element_type(v, dtypes.default_int_dtype()) for v in (x, y))
    return lax.rem(x, y)


def _rounded(name: str, apply: Unary, doc: str) -> Unary:
    """A function of real floating-point numbers; integers and booleans are as they should be."""

    @documented(name, doc)
    def function(x: Any, /) -> Any:
        x = array_argument(name, x)
        return apply(x) if dtypes.is_inexact(x.dtype) else x

    return function


def _truncated(x: Any) -> Any:
    return where(x < 0, lax.ceil(x), lax.floor(x))


def _scaled(x: Any, scale: Binary, factor: float) -> Any:
    """Part by part for complex numbers: an infinite one scaled by a complex constant would be NaN."""
    parts = (lax.real(x), lax.imag(x)) if dtypes.is_complex(x.aval.dtype) else (x,)
    scaled = [scale(part, like(part, factor)) for part in parts]
    return lax.complex(*scaled) if len(scaled) > 1 else scaled[0]


def _logarithm(base: float) -> Unary:
    return lambda x: _scaled(lax.log(x), lax.div, math.log(base))


# fmt: off
sin      = _inexact("sin",      lax.sin,      "Sine, of radians.")
cos      = _inexact("cos",      lax.cos,      "Cosine, of radians.")
tan      = _inexact("tan",      lax.tan,      "Tangent, of radians.")
tanh     = _inexact("tanh",     lax.tanh,     "Hyperbolic tangent.")
exp      = _inexact("exp",      lax.exp,      "Exponential.")
exp2     = _inexact("exp2",     lambda x: lax.exp(_scaled(x, lax.mul, math.log(2))), "2 to the power `x`.")
expm1    = _inexact("expm1",    lax.expm1,    "`exp(x) - 1`, accurate near 0.")
log      = _inexact("log",      lax.log,      "Natural logarithm, NaN below 0.")
log2     = _inexact("log2",     _logarithm(2), "Logarithm to base 2, NaN below 0.")
log10    = _inexact("log10",    _logarithm(10), "Logarithm to base 10, NaN below 0.")
log1p    = _inexact("log1p",    lax.log1p,    "`log(1 + x)`, accurate near 0.")
sqrt     = _inexact("sqrt",     lax.sqrt,     "Square root, NaN below 0.")
reciprocal = _inexact("reciprocal", lambda x: lax.integer_pow(x, -1), "`1 / x`.")
degrees  = _inexact("degrees",  lambda x: lax.mul(x, like(x, 180 / math.pi)), "Radians in degrees.")
radians  = _inexact("radians",  lambda x: lax.mul(x, like(x, math.pi / 180)), "Degrees in radians.")

floor    = _rounded("floor",    lax.floor,    "The largest integer that is not above `x`, in its dtype.")
ceil     = _rounded("ceil",     lax.ceil,     "The smallest integer that is not below `x`, in its dtype.")
trunc    = _rounded("trunc",    _truncated,   "`x` without its fraction.")

add          = _operator("add",          operator.add,      "`x + y`; of booleans, whether either is true.")
subtract     = _operator("subtract",     operator.sub,      "`x - y`. Raises TypeError for booleans.")
multiply     = _operator("multiply",     operator.mul,      "`x * y`; of booleans, whether both are true.")
divide       = _operator("divide",       operator.truediv,  "`x / y`, floating also for integers.")
floor_divide = _operator("floor_divide", operator.floordiv, "`x // y`, rounded down.")
remainder    = _operator("remainder",    operator.mod,      "`x % y`, of the sign of `y`.")
power        = _operator("power",        operator.pow,      "`x ** y`; a Python int as exponent is static.")
bitwise_and  = _operator("bitwise_and",  operator.and_,     "`x & y`, of integers or booleans.")
bitwise_or   = _operator("bitwise_or",   operator.or_,      "`x | y`, of integers or booleans.")
bitwise_xor  = _operator("bitwise_xor",  operator.xor,      "`x ^ y`, of integers or booleans.")
equal         = _operator("equal",         operator.eq, "Whether `x == y`; NaN equals nothing.")
not_equal     = _operator("not_equal",     operator.ne, "Whether `x != y`.")
less          = _operator("less",          operator.lt, "Whether `x < y`; False where either is NaN.")
less_equal    = _operator("less_equal",    operator.le, "Whether `x <= y`; False where either is NaN.")
greater       = _operator("greater",       operator.gt, "Whether `x > y`; False where either is NaN.")
greater_equal = _operator("greater_equal", operator.ge, "Whether `x >= y`; False where either is NaN.")

maximum     = _promoted("maximum",     lax.max, "The larger one of `x` and `y`; NaN where either is.")
minimum     = _promoted("minimum",     lax.min, "The smaller one of `x` and `y`; NaN where either is.")
fmod        = _promoted("fmod",        _rem, "Remainder of the division rounded towards zero, of the sign of `x`.")
float_power = _promoted("float_power", lax.pow, "`x ** y` in floating point.", inexact=True)

logical_and = _logical("logical_and", lax.bitwise_and, "Whether `x` and `y` are both nonzero.")
logical_or  = _logical("logical_or",  lax.bitwise_or,  "Whether `x` or `y` is nonzero.")
logical_xor = _logical("logical_xor", lax.bitwise_xor, "Whether exactly one of `x` and `y` is nonzero.")
# fmt: on


def logical_not(x: Any, /) -> Any:
    """Whether `x` is zero."""
    return lax.bitwise_not(to_bool(array_argument("logical_not", x)))


def bitwise_invert(x: Any, /) -> Any:
    """`~x`, of integers or booleans."""
    return ~array_argument("bitwise_invert", x)


def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """`(x // y, x % y)`."""
    return floor_divide(x, y), remainder(x, y)


# -- one argument, any dtype -------------------------------------------------------------------------------------


def negative(x: Any, /) -> Any:
    """`-x`. Raises TypeError for booleans."""
    return -array_argument("negative", x)


def positive(x: Any, /) -> Any:
    """`x`."""
    return array_argument("positive", x)


def absolute(x: Any, /) -> Any:
    """Absolute value; the modulus of a complex number."""
    return abs(array_argument("absolute", x))


def sign(x: Any, /) -> Any:
    """-1, 0 or 1; for a complex number `x / abs(x)`. Raises TypeError for booleans."""
    return lax.sign(array_argument("sign", x))


def square(x: Any, /) -> Any:
    """`x * x`."""
    x = array_argument("square", x)
    return lax.square(lax.convert_element_type(x, dtypes.default_int_dtype()) if dtypes.is_bool(x.dtype) else x)


def real(x: Any, /) -> Any:
    """Real part; a real array as it is."""
    return array_argument("real", x).real


def imag(x: Any, /) -> Any:
    """Imaginary part; zeros for a real array."""
    return array_argument("imag", x).imag


def conjugate(x: Any, /) -> Any:
    """Complex conjugate; a real array as it is."""
    return array_argument("conjugate", x).conj()


def isnan(x: Any, /) -> Any:
    """Whether elements are NaN."""
    x = array_argument("isnan", x)
    return lax.ne(x, x)


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


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """`x` where `condition` is nonzero, else `y`; all three broadcast together.

    Args:
        condition: a boolean array; elements of another dtype count as true where they differ from zero.
        x: values where it is true.
        y: values elsewhere.

    Returns:
        An array of the dtype that `x` and `y` promote to.

    Raises:
        NotImplementedError: only `condition` is given: the number of its nonzero elements is no static shape.
        ValueError: the shapes do not broadcast together.
    """
    if x is None or y is None:
        raise NotImplementedError("where: give both x and y; with the condition alone the result has no static shape")
    chosen = to_bool(array_argument("where", condition))
    x, y = promote_dtypes("where", x, y)
    return lax.select(*lax.broadcast_operands(chosen, x, y))


def clip(arr: Any, /, min: Any = None, max: Any = None) -> Any:
    """Elements limited to an interval: `minimum(maximum(arr, min), max)`.

    Args:
        arr: the array.
        min: lower bound; None leaves the side open.
        max: upper bound, which wins where the bounds cross.

    Raises:
        ValueError: an argument is complex: complex numbers have no order.
    """
    out = array_argument("clip", arr)
    bounds = [
        (operand("clip", b, i + 1), f) for i, (b, f) in enumerate(((min, maximum), (max, minimum))) if b is not None
    ]
    if any(dtypes.is_complex(dtypes.result_type(x)) for x in (out, *(b for b, _ in bounds))):
        raise ValueError("clip: complex numbers have no order; clip their real and imaginary parts")
    for bound, limit in bounds:
        out = limit(out, bound)
    return out


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether `abs(a - b) <= atol + rtol * abs(b)`, or both are the same infinity (or NaN, if `equal_nan`)."""
    a, b = promote("isclose", a, b)
    if not dtypes.is_inexact(a.dtype):
        a, b = promote("isclose", a, b, inexact=True)
    close = abs(a - b) <= atol + rtol * abs(b)
    out = where(logical_and(isfinite(a), isfinite(b)), close, lax.eq(a, b))
    return logical_or(out, logical_and(isnan(a), isnan(b))) if equal_nan else out
