"""Check loops with no turn and with one turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from corejax.extend import MissingRuleError, ShapedArray
from corejax_testing.calls import Call, accepts, runs
from corejax_testing.checks.batching import check_vmap
from corejax_testing.checks.compiled import check_xla
from corejax_testing.checks.derivatives import check_jvp
from corejax_testing.checks.evaluation import check_types
from corejax_testing.checks.registry import check
from corejax_testing.checks.splits import check_dce, check_partial_eval, check_splits
from corejax_testing.checks.transposition import check_vjp
from corejax_testing.outcomes import CheckFailure, NotApplicable

_MOST = 5  # the number of operands for which all choices are tried
_CHECKS = {
    "types": check_types, "jvp": check_jvp, "vjp": check_vjp, "vmap": check_vmap, "partial_eval": check_partial_eval,
    "splits": check_splits, "dce": check_dce, "xla": check_xla,
}  # fmt: skip


@check("turns", "impl", limit=3)
def check_turns(call: Call, rng: np.random.Generator) -> None:
    """Check a loop over axes of length 0 and of length 1 with the checks that its example passes."""
    tried = False
    for there in _with_lengths(call):
        tried = True
        for name, run in _CHECKS.items():
            if name in call.example.skip or name in call.example.fails:
                continue
            try:
                run(there, rng)
            except (NotApplicable, MissingRuleError):
                continue
            except CheckFailure as failure:
                raise CheckFailure(f"{name}, {_named(there, call)}: {failure}", failure.rule, failure.hint) from failure
    if not tried:
        raise NotApplicable("no parameter is the length of a loop over an operand's axis")


def _named(there: Call, call: Call) -> str:
    name = next(k for k in there.params if there.params[k] is not call.params[k])
    return f"with {name}={there.params[name]}"


def _with_lengths(call: Call) -> Iterator[Call]:
    """Yield the application with the loop's length, and the operands' first axes of that length, set to 0 and to 1."""
    if "higher_order" not in call.primitive.tags:
        return
    for name, length in call.params.items():
        if type(length) is not int or length < 1:
            continue
        looped = [i for i, x in enumerate(call.example.operands)
                  if isinstance(x, ShapedArray) and x.shape[:1] == (length,)][:_MOST]  # fmt: skip
        for new in (0, 1):
            found = _shortened(call, name, new, looped) if looped and new != length else None
            if found is not None:
                yield found


def _shortened(call: Call, name: str, length: int, looped: list[int]) -> Call | None:
    """Return the application with as many operands shortened as abstract eval accepts, or None."""
    for count in range(len(looped), 0, -1):
        for chosen in itertools.combinations(looped, count):
            values: list[Any] = [x[:length] if i in chosen else x for i, x in enumerate(call.values)]
            params = {**call.params, name: length}
            example = replace(call.example, params=params, operands=tuple(
                ShapedArray(v.shape, v.dtype) if i in chosen else x
                for i, (v, x) in enumerate(zip(values, call.example.operands, strict=True))
            ))  # fmt: skip
            there = replace(call, params=params, example=example).at(values)
            if accepts(there) and runs(there):
                return there
    return None
