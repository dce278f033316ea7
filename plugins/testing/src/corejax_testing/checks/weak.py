"""Weak types under transformations: what a rule gives is as weakly typed as what it stands for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corejax.extend import stage_closed
from corejax_testing.calls import Call
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure, NotApplicable

_HINT = "numbers in the rule are strongly typed if they come from NumPy, weakly if from Python"


@check("weak_results", "jvp", limit=2)
def check_weak_results(call: Call, rng: np.random.Generator) -> None:
    """With weakly typed operands, batched and differentiated, results are as weakly typed as abstract eval says."""
    if not call.values or "higher_order" in call.primitive.tags:
        raise NotApplicable("its types are those of its program, or it has no operands")
    for flags in _choices(len(call.values)):
        avals = tuple(a.update(weak_type=weak) for a, weak in zip(call.avals, flags, strict=True))
        closed = stage_closed(call.__call__, avals)
        said = [a.weak_type for a in call.types(avals)]
        programs = [("the program", "abstract_eval", closed)]
        programs += [(f"the {rule} rule", rule, change(closed)) for rule, change in call.transforms().items()]
        for name, rule, program in programs:
            got = [a.weak_type for a in program.out_avals[: len(said)]]
            if got != said:
                shown = ", ".join(a.str_short() for a in avals)
                message = f"{name} of ({shown}) gives results of which {_words(got)}; abstract eval says {_words(said)}"
                raise CheckFailure(message, rule, _HINT)


def _choices(count: int) -> Iterator[list[bool]]:
    """None weakly typed, all, and each alone."""
    yield [False] * count
    yield [True] * count
    if 1 < count <= 4:
        yield from ([k == one for k in range(count)] for one in range(count))


def _words(flags: list[bool]) -> str:
    weak = [k for k, flag in enumerate(flags) if flag]
    return f"{weak} are weakly typed" if weak else "none is weakly typed"
