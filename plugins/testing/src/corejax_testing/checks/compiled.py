"""The XLA translation: against impl, against StableHLO's reference interpreter, and at special values."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import corejax
from corejax.extend import get_aval, xla_translations
from corejax_testing.arrays import Array, compare, is_inexact
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure, NotApplicable

RULE = "xla_translation"


def has_backend() -> bool:
    """Whether something compiles programs here."""
    return importlib.util.find_spec("corejax_xla_backend") is not None and hasattr(corejax, "jit")


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


@check("xla", RULE, dtypes=True, shapes=True, limit=24)
def check_xla(call: Call, rng: np.random.Generator) -> None:
    """Compiled, it gives what impl gives."""
    _needs_backend(call)
    wanted = host(call(*call.values))
    for i, (got, right) in enumerate(zip(_compiled(call), wanted, strict=True)):
        compare(got, right, f"result {i} of the compiled program", RULE, scale=call.example.tolerance)


@check("stablehlo", RULE, dtypes=True, limit=16)
def check_stablehlo(call: Call, rng: np.random.Generator) -> None:
    """StableHLO's reference interpreter gives for its translation what impl gives."""
    _needs_backend(call)
    if not call.values or not all(x.size for x in call.values):
        raise NotApplicable("the interpreter ends the process on some empty operands")
    if any(x.dtype.kind in "iu" and not np.all(x) for x in call.values[1:]) and "elementwise" in call.primitive.tags:
        raise NotApplicable("the interpreter ends the process on integer division by zero")
    from corejax_xla_backend import hlo

    lowered = corejax.jit(lambda *values: call(*values)).lower(*call.values)
    if "stablehlo.custom_call" in lowered.as_text():
        raise NotApplicable("the interpreter ends the process on custom calls")
    try:
        outs = hlo.reference_eval(lowered, *call.values)
    except RuntimeError as error:
        raise NotApplicable(f"the interpreter does not know the program: {error}") from error
    for i, (got, right) in enumerate(zip(outs, host(call(*call.values)), strict=True)):
        compare(got, right, f"result {i} by StableHLO's interpreter", RULE, scale=2 * call.example.tolerance)


@check("special", RULE, dtypes=True)
def check_special(call: Call, rng: np.random.Generator) -> None:
    """At NaN, infinities, both zeros, the largest and smallest numbers, the compiled program gives what impl gives."""
    if "elementwise" not in call.primitive.tags or not call.values:
        raise NotApplicable("not elementwise")
    if any(x.ndim == 0 for x in call.values):
        raise NotApplicable("the same as for arrays")
    if any(x.dtype.kind == "c" or x.dtype == np.bool_ for x in call.values):
        raise NotApplicable("complex infinities have many faces; booleans have none")
    _needs_backend(call)
    numbers = [_special(x.dtype) for x in call.values]
    grid = np.meshgrid(*(np.arange(len(each)) for each in numbers), indexing="ij")
    there = call.at([each[index.ravel()] for each, index in zip(numbers, grid, strict=True)])
    for i, (got, right) in enumerate(zip(_compiled(there), host(there(*there.values)), strict=True)):
        for k in range(len(right)):
            at = ", ".join(repr(v[k].item()) for v in there.values)
            compare(got[k], right[k], f"result {i} at ({at}), compiled,", RULE, scale=call.example.tolerance)


def _special(dtype: np.dtype[Any]) -> Array:
    """The numbers of a dtype where functions go wrong."""
    if is_inexact(dtype):
        return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, 1e30, -1e30]).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([0, 1, 2, high, high - 1, low, low + 1, *([-1, -2] if low else [])], dtype)
