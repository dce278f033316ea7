"""Check translations in every dtype: small integers that wrap, numbers that a cast to another dtype would round."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

import corejax
from corejax.extend import ShapedArray
from corejax_testing.arrays import Array, compare, epsilon, is_inexact, require_zeros, wide
from corejax_testing.calls import Call, accepts, host
from corejax_testing.checks.compiled import RULE, has_backend, translates
from corejax_testing.checks.registry import check
from corejax_testing.extremes import in_dtype
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.variations import at_length, main_dtype

_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
_DTYPES = tuple(np.dtype(t) for t in (*_INTEGERS, *_FLOATS, np.complex64, np.bool_))
_NARROW = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_LONG = 1000
_PARTS = (
    *(0.5, 1.5, 2.5, -0.5, -1.5, 0.0, -0.0, 100.25, -100.75, 1.0009765625, 0.1, 200.5, 300.5, -300.5, 7e4, -7e4, 1e10),
    *(np.inf, -np.inf, np.nan),
)
_HINT = "a cast to another dtype rounds, or does not wrap: compute in the operand's own dtype"


@check("conversions", RULE, shrinks=False, optimised=True)
def check_conversions(call: Call, rng: np.random.Generator) -> None:
    """Check compiled results in each integer dtype over its whole range, for dtypes in parameters, and in long sums."""
    if not has_backend():
        raise NotApplicable("corejax-xla-backend is not installed")
    if "higher_order" in call.primitive.tags or not translates(call):
        raise NotApplicable("its program fixes its types, or it has no translation")
    if call.others and call.example is not max(call.others, key=lambda e: sum(math.prod(x.shape) for x in e.operands)):
        raise NotApplicable("another example has more numbers")
    variants, sums = list(_variants(call, rng)), list(_long_sums(call))
    if not variants and not sums:
        raise NotApplicable("it accepts neither integers nor 16-bit floats, and none of its parameters is a dtype")
    wanted = [host(there(*there.values)) for there in variants]
    operands = [list(there.values) for there in (*variants, *sums)]
    every = [*variants, *sums]
    compiled = corejax.jit(lambda each: [there(*values) for there, values in zip(every, each, strict=True)])(operands)
    for there, outs, rights in zip(variants, compiled, wanted, strict=False):
        for i, (got, right) in enumerate(zip(host(outs), rights, strict=True)):
            _require_same(there, got, right, i)
    for there, outs in zip(sums, compiled[len(variants) :], strict=True):
        _require_sums(there, host(outs))


def _variants(call: Call, rng: np.random.Generator) -> Iterator[Call]:
    """Yield the application with other dtypes of its free operands and of its dtype parameters."""
    free = [i for i, x in enumerate(call.example.operands) if isinstance(x, ShapedArray)]
    main = next((call.values[i].dtype for i in free if call.values[i].dtype != np.bool_), None)
    if main is None:
        return
    named = [name for name, value in call.params.items() if isinstance(value, np.dtype)]
    for dtype in _DTYPES:
        values = [_numbers(call, i, dtype, rng) if i in free and x.dtype == main else x
                  for i, x in enumerate(call.values)]  # fmt: skip
        for params in _params(call, named, dtype):
            there = replace(call, params=params).at(values)
            integers = dtype.kind in "iu" or any(params[name] != call.params[name] for name in named)
            if integers and _is_taken(there) and not _truncates(there):
                yield there


def _long_sums(call: Call) -> Iterator[Call]:
    """Yield applications to many equal 16-bit numbers, for which sums in 16 bits are far off in one direction."""
    main = main_dtype(call.example)
    if main is None or not is_inexact(main):
        return
    for dtype in _NARROW:
        for other in at_length(call.primitive, in_dtype(call, main, dtype), _LONG, 20 * _LONG):
            there = Call.of(call.primitive, other, np.random.default_rng(0))
            if len(there.avals_out) != len(call.avals_out):
                continue  # a primitive with a result for each element does not sum
            ranges = [other.range_of(i) for i in range(len(there.values))]
            values = [np.full_like(x, high - 0.225 * (high - low)) if x.dtype == dtype else x
                      for x, (low, high) in zip(there.values, ranges, strict=True)]  # fmt: skip
            near = there.near(values)
            if near is not None and _is_taken(near):
                yield near


def _require_sums(call: Call, outs: Sequence[Array]) -> None:
    """Require compiled sums to be as accurate as impl's, compared with sums of wider numbers.

    Raises:
        CheckFailure: a compiled sum is off while impl's is accurate.
    """
    wider = call.widened()
    rights, exact = host(call(*call.values)), host(wider(*wider.values))
    for i, (got, right, best) in enumerate(zip(outs, rights, exact, strict=True)):
        if not is_inexact(right.dtype) or got.dtype != right.dtype:
            continue
        with np.errstate(all="ignore"):
            allowed = 3 * epsilon(right.dtype) * call.example.tolerance * np.abs(best)
            off = (np.abs(wide(right) - best) <= allowed) & ~(np.abs(wide(got) - best) <= allowed)
        if off.any():
            k = np.unravel_index(int(np.argmax(off)), off.shape)
            types = ", ".join(a.str_short() for a in call.avals)
            message = f"result {i} of ({types}), compiled, is {got[k].item()!r}, but {right[k].item()!r} is right"
            raise CheckFailure(message, RULE, "add in 32 bits, and round at the end")


def _truncates(call: Call) -> bool:
    """Return whether a primitive sums floating-point numbers to integers, so that its precision may differ."""
    integers = any(a.dtype.kind in "iub" for a in call.avals_out)
    return integers and bool(call.inexact) and "elementwise" not in call.primitive.tags


def _params(call: Call, named: list[str], dtype: np.dtype[Any]) -> Iterator[dict[str, Any]]:
    """Yield the parameters, and then variants with other dtypes in place of each dtype parameter."""
    yield call.params
    others = _DTYPES if "elementwise" in call.primitive.tags else dict.fromkeys((dtype, np.dtype(np.int32)))
    for name in named:
        yield from ({**call.params, name: other} for other in others if other != call.params[name])


def _is_taken(call: Call) -> bool:
    if not accepts(call):
        return False
    try:
        with np.errstate(all="ignore"):
            host(call(*call.values))
    except (ValueError, ArithmeticError, NotImplementedError):
        return False
    return True


def _numbers(call: Call, operand: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Return nonzero integers of the whole range, or floats that a conversion has to round."""
    x = call.values[operand]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        bits = rng.integers(2, info.max, x.shape, dtype=dtype, endpoint=True)
        odd = np.asarray(bits | dtype.type(1), dtype)
        return odd if info.min == 0 else np.asarray(np.where(rng.random(x.shape) < 0.5, odd, -odd), dtype)
    if is_inexact(dtype) and "elementwise" in call.primitive.tags and len(call.values) == 1:
        return np.resize(np.array(_PARTS), x.shape if x.ndim != 1 else (len(_PARTS),)).astype(dtype)
    return x.astype(dtype)


def _require_same(call: Call, got: Array, right: Array, result: int) -> None:
    """Compare a compiled result with impl's: integers and booleans exactly, zeros with their sign."""
    types = ", ".join(a.str_short() for a in call.avals)
    what = f"result {result} of ({types}) of the compiled program"
    try:
        compare(got, right, what, RULE, scale=call.example.tolerance)
        require_zeros(got, right, what, RULE)
    except CheckFailure as failure:
        raise CheckFailure(f"{failure}; parameters {call.params}", RULE, failure.hint or _HINT) from failure
