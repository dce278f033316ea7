"""Draw operands and compare results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from corejax.extend import ShapedArray, host_value
from corejax.extend.types import numbers_of
from corejax_testing.diagnosis import diagnose
from corejax_testing.outcomes import CheckFailure

Array = np.ndarray[Any, Any]

# The relative error, by dtype, up to which elementary functions of good libraries agree.
TOLERANCES = {
    "bfloat16": 4e-2,
    "float16": 5e-3,
    "float32": 3e-5,
    "complex64": 3e-5,
    "float64": 1e-9,
    "complex128": 1e-9,
}
_TINY = 1e-2  # for eight-bit floats and other narrow dtypes


def is_inexact(dtype: Any) -> bool:
    """Return whether results of a dtype are rounded: floating-point and complex dtypes."""
    dtype = np.dtype(dtype)
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))


def has_tangents(dtype: Any) -> bool:
    """Return whether a dtype has tangents: powers of two alone (float8_e8m0fnu) have no zero, signs or sums."""
    return is_inexact(dtype) and np.dtype(dtype).name != "float8_e8m0fnu"


def tolerance(dtype: Any) -> float:
    """Return the relative error that is allowed in a dtype; 0 for integers and booleans."""
    return TOLERANCES.get(np.dtype(dtype).name, _TINY) if is_inexact(dtype) else 0.0


def epsilon(dtype: Any) -> float:
    """Return the distance from 1 to the next larger number of a dtype."""
    return float(ml_dtypes.finfo(np.dtype(dtype)).eps)  # type: ignore[no-untyped-call]  # ml_dtypes is untyped


def smallest_size(dtype: Any) -> float:
    """Return the size of results up to which a dtype's tolerance is as large as the rounding errors of a sum.

    Terms of size 1 may cancel, so that a smaller result consists of their rounding errors: 32 of the last digit.
    """
    return min(1.0, 32 * epsilon(dtype) / tolerance(dtype)) if is_inexact(dtype) else 0.0


def largest(x: Array) -> float:
    """Return the largest absolute value among the finite numbers of an array, or 0."""
    x = np.abs(wide(x))
    return float(x[np.isfinite(x)].max(initial=0.0))


def draw(rng: np.random.Generator, aval: ShapedArray, low: float, high: float) -> Array:
    """Draw an array of a type: uniform floats or integers in [low, high], or random booleans."""
    dtype = aval.dtype
    if dtype == np.bool_:
        return rng.integers(0, 2, aval.shape).astype(bool)
    if not is_inexact(dtype):
        floor = max(math.ceil(low), 0) if dtype.kind == "u" else math.ceil(low)
        return rng.integers(floor, max(math.floor(high), floor) + 1, aval.shape).astype(dtype)
    values = np.asarray(rng.uniform(low, high, aval.shape))
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(low, high, aval.shape)
    return np.asarray(values).astype(dtype)


def direction(rng: np.random.Generator, x: Array) -> Array:
    """Draw a tangent or cotangent of a value, with parts of size 0.5 to 1.5."""
    sign = rng.choice([-1.0, 1.0], x.shape)
    values = np.asarray(sign * rng.uniform(0.5, 1.5, x.shape))
    if x.dtype.kind == "c":
        values = values + 1j * rng.choice([-1.0, 1.0], x.shape) * rng.uniform(0.5, 1.5, x.shape)
    return np.asarray(values).astype(x.dtype)


def on_host(value: Any) -> Array:
    """Convert a value to a NumPy array; extended dtypes become their structured dtypes of the host."""
    found: Array = np.asarray(host_value(value))
    return found


def wide(value: Any) -> Array:
    """Convert inexact numbers to float64 or complex128, and extended dtypes to the numbers in them."""
    x: Array = on_host(value)
    if x.dtype.names is not None:
        x = numbers_of(x)
    if not is_inexact(x.dtype):
        return x
    wider: Array = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return wider


def show(x: Any) -> str:
    """Format a value with its type on one line; large arrays are abbreviated."""
    x = on_host(x)
    numbers = np.array2string(wide(x), precision=9, threshold=12, edgeitems=3, separator=", ")
    return f"{x.dtype.name}{list(x.shape)} {' '.join(numbers.split())}"


def compare(
    got: Any,
    wanted: Any,
    what: str,
    rule: str | None,
    *,
    scale: float = 1.0,
    allowed: float | None = None,
    terms: float | None = None,
) -> None:
    """Require two arrays to have the same shape, dtype and numbers.

    Errors are relative to the largest number of `wanted`, or to the terms that it is computed from if they are larger.

    Args:
        got: the array to check.
        wanted: the right array.
        what: the subject of the error message: "the tangent of the jvp rule".
        rule: kind of the rule to blame.
        scale: factor on the dtype's tolerance.
        allowed: relative error to allow in place of the dtype's tolerance.
        terms: size of the terms; by default, terms of size 1 are computed to the last digits.

    Raises:
        CheckFailure: the arrays differ; the message names the element with the largest error.
    """
    got, wanted = on_host(got), on_host(wanted)
    for name, a, b in (("shape", got.shape, wanted.shape), ("dtype", got.dtype.name, wanted.dtype.name)):
        if a != b:
            raise CheckFailure(f"{what} has {name} {a}, but {b} is right", rule, diagnose(got, wanted))
    if got.size == 0:
        return
    bound = (tolerance(wanted.dtype) if allowed is None else allowed) * scale
    a, b = wide(got), wide(wanted)
    with np.errstate(all="ignore"):
        least = smallest_size(wanted.dtype) if terms is None else terms
        size = max(largest(b), least)
        off = (a != b) if bound == 0 else ~(np.abs(a - b) <= bound * size)
        off &= ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if off.any():
        _complain(a, b, off, what, rule)


def compare_each(
    got: Iterable[Any],
    wanted: Iterable[Any],
    of: str,
    what: str,
    rule: str | None,
    *,
    scale: float = 1.0,
    allowed: float | None = None,
) -> None:
    """Compare several results by `compare`; messages name each as `of`, its position, and `what`."""
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        compare(a, b, f"{of} {i}{what}", rule, scale=scale, allowed=allowed)


def replaced(values: Iterable[Any], which: Iterable[int], new: Iterable[Any]) -> list[Any]:
    """Return the values with those at some positions replaced."""
    every = list(values)
    for i, x in zip(which, new, strict=True):
        every[i] = x
    return every


def require_zeros(got: Array, right: Array, what: str, rule: str | None) -> None:
    """Require zeros to have the same sign.

    Raises:
        CheckFailure: an element is a zero of the wrong sign.
    """
    if not is_inexact(right.dtype) or got.shape != right.shape or right.dtype.kind == "c":
        return
    off = (got == 0) & (right == 0) & (np.signbit(got) != np.signbit(right))
    if off.any():
        sign = "-0.0" if np.signbit(right)[off].ravel()[0] else "0.0"
        hint = "0 - x and x * 0 change the sign of zero: use -x, or copy x"
        raise CheckFailure(f"{what} is a zero of the wrong sign, {sign} is right", rule, hint)


def _complain(a: Array, b: Array, off: Array, what: str, rule: str | None) -> None:
    with np.errstate(all="ignore"):
        distance = np.where(off, np.nan_to_num(np.abs(wide(a) - wide(b)) if a.dtype != bool else 1.0, nan=np.inf), -1.0)
    worst = np.unravel_index(int(np.argmax(distance)), a.shape)
    where = f"[{', '.join(map(str, worst))}]" if worst else ""
    count = f"; {int(off.sum())} of {off.size} elements differ" if off.size > 1 else ""
    raise CheckFailure(f"{what} is {a[worst].item()!r}{f' at {where}' if where else ''}, "
                       f"but {b[worst].item()!r} is right{count}", rule, diagnose(a, b))  # fmt: skip
