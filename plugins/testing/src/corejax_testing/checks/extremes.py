"""Check that evaluation and compiled code agree in every dtype: at its limits, in other sizes, for empty operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import BackendError, get_aval
from corejax_testing.arrays import Array, wide
from corejax_testing.calls import Call, host
from corejax_testing.checks.compiled import RULE, has_backend, translates
from corejax_testing.checks.registry import check
from corejax_testing.extremes import WITHOUT_NAN, Filled, differences, fills, variants
from corejax_testing.outcomes import CheckFailure, NotApplicable

_HINT = "one dtype, size or special number is handled differently: see the StableHLO specification"


@check("extremes", RULE, limit=2, quick=1, shrinks=False, optimised=True)
def check_extremes(call: Call, rng: np.random.Generator) -> None:
    """Check that compiled results are impl's in every dtype, at extreme and special numbers, and for empty operands."""
    if not has_backend():
        raise NotApplicable("corejax-xla-backend is not installed")
    if "higher_order" in call.primitive.tags or call.primitive.effects:
        raise NotApplicable("its program fixes its types, or it has effects")
    if not translates(call):
        raise NotApplicable("it has no translation")
    found = [list(fills(each)) for each in variants(call)]
    if not any(found):
        raise NotApplicable("none of its operands may be any number")
    require_agreement([each for each in found if each])


def require_agreement(cases: Sequence[Sequence[Filled]]) -> None:
    """Require applications that are compiled as one program to return what each returns by itself.

    Args:
        cases: lists of applications that have the same types and different numbers.

    Raises:
        CheckFailure: a result differs.
    """
    known = [[(filled, outs) for filled in case if (outs := _evaluated(filled.call)) is not None] for case in cases]
    known = [case for case in known if case]
    calls = [case[0][0].call for case in known]
    compiled = corejax.jit(lambda each: [call(*xs) for call, xs in zip(calls, each, strict=True)])
    for k in range(max(map(len, known), default=0)):
        chosen = [case[min(k, len(case) - 1)] for case in known]
        try:
            every = compiled([list(filled.call.values) for filled, _ in chosen])
        except Exception:
            _require_programs(calls)
            raise
        for case, (filled, rights), outs in zip(known, chosen, every, strict=True):
            if k < len(case):
                _require_same(filled, rights, outs)


def _evaluated(call: Call) -> list[Any] | None:
    """Return the results, or None if the primitive refuses these numbers."""
    try:
        outs = call(*call.values)
        host(outs)
    except (ValueError, ArithmeticError, NotImplementedError):
        return None
    except Exception as error:
        if isinstance(error, BackendError) and any(get_aval(x).dtype.name in ("int2", "uint2") for x in call.values):
            return None  # XLA does not transfer two-bit integers between devices
        raise CheckFailure(f"for ({_types(call)}), {type(error).__name__}: {error}", "impl") from error
    return outs


def _require_programs(calls: Sequence[Call]) -> None:
    """Compile each application by itself, to find the one that fails.

    Raises:
        CheckFailure: an application does not compile.
    """
    for call in calls:
        try:
            corejax.jit(call.__call__)(*call.values)
        except Exception as error:
            message = f"for ({_types(call)}), compiled, {type(error).__name__}: {error}"
            raise CheckFailure(message, RULE) from error


def _require_same(filled: Filled, rights: Sequence[Any], outs: Sequence[Any]) -> None:
    call = filled.call
    for i, (right, got) in enumerate(zip(rights, outs, strict=True)):
        if get_aval(right) is not get_aval(got):
            types = [get_aval(x).str_short() for x in (got, right)]
            raise CheckFailure("compiled, result {} is of type {}, but evaluated {}".format(i, *types), RULE)
        run, compiled = host([right, got])
        off = differences(filled, run, compiled)
        if run.dtype.name in WITHOUT_NAN and (exact := _evaluated(call.widened())) is not None:
            off &= ~np.isnan(wide(exact[i]))
        if off.any():
            at = tuple(int(k) for k in np.argwhere(off)[0])
            same = "elementwise" in call.primitive.tags and all(x.shape == run.shape for x in call.values)
            operands = f" at ({', '.join(_number(x[at]) for x in call.values)})" if same else _operands(call)
            raise CheckFailure(
                f"result {i} of ({_types(call)}){operands} is {_number(run[at])}{_place(at)}, but compiled "
                f"{_number(compiled[at])}; parameters {call.params}", RULE, _HINT)  # fmt: skip


def _operands(call: Call) -> str:
    return "".join(f"\n  operand {i}: {np.array2string(x, threshold=40)}" for i, x in enumerate(call.values)) + "\n "


def _types(call: Call) -> str:
    return ", ".join(aval.str_short() for aval in call.avals)


def _number(x: Array) -> str:
    return repr(x.item()) if x.dtype.kind != "V" else str(x)


def _place(at: tuple[int, ...]) -> str:
    return f" at [{', '.join(map(str, at))}]" if at else ""
