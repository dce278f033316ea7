"""Translations in every dtype: small integers that wrap, numbers that a detour through another dtype would round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

import corejax
from corejax.extend import Example, ShapedArray, xla_translations
from corejax_testing.arrays import Array, compare, is_inexact, require_zeros
from corejax_testing.calls import Call, accepts, host
from corejax_testing.checks.compiled import RULE, has_backend
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure, NotApplicable

_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
_DTYPES = tuple(np.dtype(t) for t in (*_INTEGERS, *_FLOATS, np.complex64, np.bool_))
_PARTS = (0.5, 1.5, 2.5, -0.5, -1.5, 0.0, -0.0, 100.25, -100.75, 1.0009765625, 0.1)
_HINT = "a detour through another dtype rounds, or does not wrap: compute in the operand's own"


@check("conversions", RULE, shrinks=False, optimised=True)
def check_conversions(call: Call, rng: np.random.Generator) -> None:
    """Compiled, it is impl's in each integer dtype over its whole range, and for each dtype that a parameter names."""
    if not has_backend():
        raise NotApplicable("corejax-xla-backend is not installed")
    if (
        "higher_order" in call.primitive.tags
        or xla_translations.find(call.primitive, corejax.default_backend()) is None
    ):
        raise NotApplicable("its types are those of its program, or it has no translation")
    if call.others and call.example is not max(call.others, key=_numbers_in):
        raise NotApplicable("another example has more numbers")
    variants = list(_variants(call, rng))
    if not variants:
        raise NotApplicable("it takes no integers, and none of its parameters is a dtype")
    wanted = [host(there(*there.values)) for there in variants]
    operands = [list(there.values) for there in variants]
    compiled = corejax.jit(lambda each: [there(*values) for there, values in zip(variants, each, strict=True)])
    for there, outs, rights in zip(variants, compiled(operands), wanted, strict=True):
        for i, (got, right) in enumerate(zip(host(outs), rights, strict=True)):
            _require_same(there, got, right, i)


def _numbers_in(example: Example) -> int:
    return sum(int(np.prod(x.shape)) for x in example.operands)


def _variants(call: Call, rng: np.random.Generator) -> Iterator[Call]:
    """Applications whose free operands of the main dtype, and whose parameters that are dtypes, are others."""
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


def _truncates(call: Call) -> bool:
    """Whether integers come of sums of floating-point numbers, in a precision of its own."""
    integers = any(a.dtype.kind in "iub" for a in call.avals_out)
    return integers and bool(call.inexact) and "elementwise" not in call.primitive.tags


def _params(call: Call, named: list[str], dtype: np.dtype[Any]) -> Iterator[dict[str, Any]]:
    """The parameters; then each that is a dtype as others: of elementwise primitives as every other one."""
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
    """Integers of the whole range, none zero; floats that a conversion has to round, of the range where no other."""
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
    """Integers and booleans exactly, where floating-point operands have a meaning as such; zeros with their sign."""
    types = ", ".join(a.str_short() for a in call.avals)
    what = f"result {result} of ({types}) of the compiled program"
    if right.dtype.kind == "u" and call.inexact:
        negative = call.values[call.inexact[0]].real <= -1
        if negative.shape == right.shape:
            got, right = (np.where(negative, np.zeros((), x.dtype), x) for x in (got, right))
    try:
        compare(got, right, what, RULE, scale=call.example.tolerance)
        require_zeros(got, right, what, RULE)
    except CheckFailure as failure:
        raise CheckFailure(f"{failure}; parameters {call.params}", RULE, failure.hint or _HINT) from failure
