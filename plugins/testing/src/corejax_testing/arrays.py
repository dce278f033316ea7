"""Numbers: drawing operands, comparing results."""

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

# What elementary functions of good libraries agree to, in the dtypes that results have.
TOLERANCES = {
    "bfloat16": 4e-2,
    "float16": 5e-3,
    "float32": 3e-5,
    "complex64": 3e-5,
    "float64": 1e-9,
    "complex128": 1e-9,
}
_TINY = 1e-2  # for eight-bit floats and whatever comes


def is_inexact(dtype: Any) -> bool:
    """Whether results of a dtype are rounded."""
    dtype = np.dtype(dtype)
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))


def has_tangents(dtype: Any) -> bool:
    """Whether derivatives can be asked of a dtype: one of powers of two alone has neither zero nor signs nor sums."""
    return is_inexact(dtype) and np.dtype(dtype).name != "float8_e8m0fnu"


def tolerance(dtype: Any) -> float:
    """Relative error allowed in a dtype; 0 for integers and booleans."""
    return TOLERANCES.get(np.dtype(dtype).name, _TINY) if is_inexact(dtype) else 0.0


def epsilon(dtype: Any) -> float:
    """Distance from 1 to the next number of a dtype."""
    return float(ml_dtypes.finfo(np.dtype(dtype)).eps)  # type: ignore[no-untyped-call]


def draw(rng: np.random.Generator, aval: ShapedArray, low: float, high: float) -> Array:
    """Numbers of a type: uniform floats, integers of the range, coin flips."""
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
    """A tangent or cotangent of a value: of size about one, none near zero."""
    sign = rng.choice([-1.0, 1.0], x.shape)
    values = np.asarray(sign * rng.uniform(0.5, 1.5, x.shape))
    if x.dtype.kind == "c":
        values = values + 1j * rng.choice([-1.0, 1.0], x.shape) * rng.uniform(0.5, 1.5, x.shape)
    return np.asarray(values).astype(x.dtype)


def on_host(value: Any) -> Array:
    """As a NumPy array; elements that are not numbers stay the structures that they are on the host."""
    found: Array = np.asarray(host_value(value))
    return found


def wide(value: Any) -> Array:
    """As float64, complex128, or unchanged for integers and booleans; the numbers of elements that are none."""
    x: Array = on_host(value)
    if x.dtype.names is not None:
        x = numbers_of(x)
    if not is_inexact(x.dtype):
        return x
    wider: Array = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return wider


def show(x: Any) -> str:
    """A value with its type, large ones cut short."""
    x = on_host(x)
    numbers = np.array2string(wide(x), precision=9, threshold=12, edgeitems=3, separator=", ")
    return f"{x.dtype.name}{list(x.shape)} {numbers}"


def compare(
    got: Any, wanted: Any, what: str, rule: str | None, *, scale: float = 1.0, allowed: float | None = None
) -> None:
    """Require the same shape, dtype and numbers.

    Args:
        got, wanted: arrays.
        what: the sentence's subject: "the tangent of the jvp rule".
        rule: kind of the rule at fault.
        scale: multiplies the dtype's tolerance.
        allowed: relative error to allow in place of the dtype's.

    Raises:
        CheckFailure: they differ; with the element that is farthest off.
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
        size = np.abs(b)[np.isfinite(b)].max(initial=1.0) if is_inexact(wanted.dtype) else 0.0
        off = (a != b) if bound == 0 else ~(np.abs(a - b) <= bound * size)
        off &= ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if off.any():
        _complain(a, b, off, what, rule)


def compare_each(
    got: Iterable[Any], wanted: Iterable[Any], of: str, what: str, rule: str | None, **options: float | None
) -> None:
    """As `compare`, of each of several results: "result", for example, with its number and what is said of it."""
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        compare(a, b, f"{of} {i}{what}", rule, **options)  # type: ignore[arg-type]


def replaced(values: Iterable[Any], which: Iterable[int], new: Iterable[Any]) -> list[Any]:
    """The values with those at some positions replaced."""
    every = list(values)
    for i, x in zip(which, new, strict=True):
        every[i] = x
    return every


def require_zeros(got: Array, right: Array, what: str, rule: str | None) -> None:
    """Require zeros of the same sign.

    Raises:
        CheckFailure: one is negative, the other not.
    """
    if not is_inexact(right.dtype) or got.shape != right.shape or right.dtype.kind == "c":
        return
    off = (got == 0) & (right == 0) & (np.signbit(got) != np.signbit(right))
    if off.any():
        sign = "-0.0" if np.signbit(right)[off].ravel()[0] else "0.0"
        hint = "0 - x and x * 0 lose or make a sign: negate x, or copy it"
        raise CheckFailure(f"{what} is a zero of the wrong sign, {sign} is right", rule, hint)


def _complain(a: Array, b: Array, off: Array, what: str, rule: str | None) -> None:
    with np.errstate(all="ignore"):
        distance = np.where(off, np.nan_to_num(np.abs(wide(a) - wide(b)) if a.dtype != bool else 1.0, nan=np.inf), -1.0)
    worst = np.unravel_index(int(np.argmax(distance)), a.shape)
    where = f"[{', '.join(map(str, worst))}]" if worst else ""
    count = f"; {int(off.sum())} of {off.size} elements differ" if off.size > 1 else ""
    raise CheckFailure(f"{what} is {a[worst].item()!r}{f' at {where}' if where else ''}, "
                       f"but {b[worst].item()!r} is right{count}", rule, diagnose(a, b))  # fmt: skip
