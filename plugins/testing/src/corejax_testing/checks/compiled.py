"""Check the XLA translation against impl and StableHLO's reference interpreter, also at special values."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import corejax
from corejax.extend import get_aval, jvp_flat, jvp_rules, vmap_rules, xla_translations
from corejax_testing.arrays import Array, compare, compare_each, is_inexact, require_zeros, tolerance, wide
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check, place_of
from corejax_testing.diagnosis import ADVICE
from corejax_testing.outcomes import CheckFailure, NotApplicable, hinting

RULE = "xla_translation"


def has_backend() -> bool:
    """Return whether corejax-xla-backend is installed, so that programs can be compiled."""
    return importlib.util.find_spec("corejax_xla_backend") is not None and hasattr(corejax, "jit")


def translates(call: Call) -> bool:
    """Return whether the primitive has a translation for the default backend."""
    return has_backend() and xla_translations.find(call.primitive, corejax.default_backend()) is not None


def _needs_backend(call: Call) -> None:
    if not has_backend():
        raise NotApplicable("corejax-xla-backend is not installed")
    xla_translations.lookup(call.primitive, corejax.default_backend())


def _compiled(call: Call) -> list[Array]:
    outs = corejax.jit(lambda *values: call(*values))(*call.values)
    for i, (out, aval) in enumerate(zip(outs, call.avals_out, strict=True)):
        if get_aval(out) is not aval:
            raise CheckFailure(f"compiled, result {i} is of type {get_aval(out).str_short()}, "
                               f"evaluated {aval.str_short()}", RULE)  # fmt: skip
    return host(outs)


@check("xla", RULE, dtypes=True, shapes=True, limit=24, optimised=True, long=True)
def check_xla(call: Call, rng: np.random.Generator) -> None:
    """Check that the compiled primitive returns what impl returns."""
    _needs_backend(call)
    wanted = host(call(*call.values))
    with hinting(partial(_or_impl, call)):
        compare_each(_compiled(call), wanted, "result", " of the compiled program", RULE, scale=call.example.tolerance)


def _or_impl(call: Call, failure: CheckFailure) -> str:
    """Return the hint of a failure; it says that impl may be wrong, if nothing else computes what it does."""
    if call.example.reference is not None or call.primitive.decomposition is not None:
        return failure.hint
    place = place_of(call.primitive, "impl")
    return f"{failure.hint or ADVICE[RULE]}; or impl is wrong ({place}): `reference=` of the example would tell"


@check("stablehlo", RULE, dtypes=True, limit=16)
def check_stablehlo(call: Call, rng: np.random.Generator) -> None:
    """Check that StableHLO's reference interpreter evaluates the translation to what impl returns."""
    _needs_backend(call)
    from corejax_testing.reference import interpreter
    from corejax_xla_backend import hlo

    lowered = corejax.jit(lambda *values: call(*values)).lower(*call.values)
    outs = interpreter.run(*hlo.program_and_operands(lowered, *call.values))
    wanted = host(call(*call.values))
    compare_each(outs, wanted, "result", " by StableHLO's interpreter", RULE, scale=2 * call.example.tolerance)


@check("special", RULE, dtypes=True, optimised=True)
def check_special(call: Call, rng: np.random.Generator) -> None:
    """Check that compiled, batched and jvp results are impl's at NaN, infinities, zeros and the largest numbers."""
    if "elementwise" not in call.primitive.tags or not call.values:
        raise NotApplicable("not elementwise")
    if any(x.ndim == 0 for x in call.values):
        raise NotApplicable("the same as for arrays")
    if any(x.dtype.kind == "c" or x.dtype == np.bool_ for x in call.values):
        raise NotApplicable("complex infinities have many representations; booleans have no special values")
    numbers = [_special(x.dtype) for x in call.values]
    grid = np.meshgrid(*(np.arange(len(each)) for each in numbers), indexing="ij")
    there = call.at([each[index.ravel()] for each, index in zip(numbers, grid, strict=True)])
    if call.example.finite:
        known = np.all([np.isfinite(x) for x in (*there.values, *host(there(*there.values)))], axis=0)
        there = call.at([x[known] for x in there.values])
    wanted = host(there(*there.values))
    for name, rule, outs in _elsewhere(there):
        for i, (got, right) in enumerate(zip(outs, wanted, strict=True)):
            for k in _suspects(there, got, right):
                at = ", ".join(repr(v[k].item()) for v in there.values)
                with hinting(partial(_or_impl, call)):
                    compare(got[k], right[k], f"result {i} at ({at}), {name},", rule, scale=call.example.tolerance)
                require_zeros(got[k], right[k], f"result {i} at ({at}), {name},", rule)
            if rule == RULE:
                _require_precision(there, got, right, i)


def _suspects(call: Call, got: Array, right: Array) -> list[int]:
    """Return the elements that differ, also in the sign of zero if the operands' zeros all have one sign."""
    if got.shape != right.shape or got.dtype != right.dtype:
        return list(range(len(right)))
    same = (got == right) | ((got != got) & (right != right))
    if is_inexact(right.dtype) and right.dtype.kind != "c":
        zeros = [(x == 0) & np.signbit(x) for x in call.values if is_inexact(x.dtype)]
        others = [(x == 0) & ~np.signbit(x) for x in call.values if is_inexact(x.dtype)]
        either = np.any(zeros, axis=0) & np.any(others, axis=0)
        # A function that returns one of its operands, such as max, may return either zero.
        either &= all(np.any([(right == x) | (right != right) for x in call.values], axis=0))
        same &= either | (right != 0) | (np.signbit(got) == np.signbit(right))
    return [int(k) for k in np.flatnonzero(~same)]


def _require_precision(call: Call, got: Array, right: Array, result: int) -> None:
    """Require compiled results to be accurate to the last digits if impl's are.

    Raises:
        CheckFailure: a compiled result has lost digits that wider numbers and impl agree on.
    """
    wider = call.widened()
    if not is_inexact(right.dtype) or wider is call:
        return
    exact = host(wider(*wider.values))[result]
    with np.errstate(all="ignore"):
        size = tolerance(right.dtype) * np.abs(exact) * call.example.tolerance
        limits = ml_dtypes.finfo(right.dtype)  # type: ignore[no-untyped-call]  # ml_dtypes is untyped
        normal = np.abs(exact) > float(limits.smallest_normal)
        known = normal & np.isfinite(exact) & (np.abs(wide(right) - exact) <= size)
        off = known & ~(np.abs(wide(got) - exact) <= 2 * size)
    if off.any():
        k = int(np.argmax(off))
        at = ", ".join(repr(v[k].item()) for v in call.values)
        message = f"result {result} at ({at}), compiled, is {got[k].item()!r}, but {right[k].item()!r} is right"
        raise CheckFailure(message, RULE, "the translation loses digits: in a difference, or in a narrower dtype")


def _elsewhere(call: Call) -> Iterator[tuple[str, str, list[Array]]]:
    """Yield the results of every other way to compute them: vmap, the jvp rule, and compilation."""
    if vmap_rules.find(call.primitive) is not None:
        yield "batched", "vmap", host(corejax.vmap(call.__call__)(*call.values))
    if call.inexact and jvp_rules.find(call.primitive) is not None:
        ts = [np.zeros_like(x) if i in call.inexact else None for i, x in enumerate(call.values)]
        yield "as the jvp rule's result", "jvp", host(jvp_flat(call, call.values, ts)[0])
    if translates(call):
        yield "compiled", RULE, _compiled(call)


def _special(dtype: np.dtype[Any]) -> Array:
    """Return the numbers of a dtype at which functions often go wrong."""
    if is_inexact(dtype):
        few = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, 1e30, -1e30, 1e-3, -1e-3]
        return np.array(few).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    rounded = [n for n in (2**24 + 1, 2**53 + 1) if n < high]  # integers that float32 and float64 round
    return np.array([0, 1, 2, high, high - 1, low, low + 1, *([-1, -2] if low else []), *rounded], dtype)
