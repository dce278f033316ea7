"""The primitive in programs: types, text, parameters, effects."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import ClosedJaxpr, batch_jaxpr, jvp_jaxpr, jvp_rules, vmap_rules
from corejax.extend.programs import check_jaxpr, parse_jaxpr, same_jaxpr, select_list
from corejax_testing.calls import Call
from corejax_testing.checks.registry import at_fault, check
from corejax_testing.outcomes import CheckFailure, NotApplicable


def _checked(program: ClosedJaxpr, what: str, rule: str) -> None:
    try:
        check_jaxpr(program)
    except (TypeError, ValueError) as error:
        raise CheckFailure(f"{what} is not well typed: {error}", rule) from error


@check("programs", "abstract_eval", dtypes=True)
def check_programs(call: Call, rng: np.random.Generator) -> None:
    """Programs with it, differentiated and batched ones too, are well typed."""
    closed = call.closed()
    _checked(closed, "its program", "abstract_eval")
    for got, wanted in zip(closed.out_avals, call.avals_out, strict=True):
        if got is not wanted:
            raise CheckFailure(f"staged, it is of type {got.str_short()}, evaluated {wanted.str_short()}")
    nonzeros = call.moves
    if any(nonzeros) and jvp_rules.find(call.primitive) is not None:
        with at_fault("jvp"):
            moved, out_nonzeros = jvp_jaxpr(closed, nonzeros)
        _checked(moved, "the program of its jvp rule", "jvp")
        tangents = moved.out_avals[len(closed.out_avals) :]
        primals = select_list(out_nonzeros, closed.out_avals)
        for t, a in zip(tangents, primals, strict=True):
            if (t.shape, t.dtype) != (a.shape, a.dtype):
                raise CheckFailure(
                    f"the jvp rule's tangent is of type {t.str_short()}, its result {a.str_short()}", "jvp"
                )
    if call.values and vmap_rules.find(call.primitive) is not None:
        with at_fault("vmap"):
            batched, _ = batch_jaxpr(closed, 3, [0] * len(call.values))
        _checked(batched, "the program of its vmap rule", "vmap")


@check("text", None)
def check_text(call: Call, rng: np.random.Generator) -> None:
    """Its program, differentiated and batched ones too, prints to text that parses to the same program."""
    closed = call.closed()
    if closed.consts:
        raise NotApplicable("the program has constants")
    if any(callable(value) and not isinstance(value, type) for value in call.params.values()):
        raise NotApplicable("a parameter is a function, which has no text of its own")
    for program in (closed, *(transform(closed) for transform in call.transforms().values())):
        _round_trip(program)


def _round_trip(closed: ClosedJaxpr) -> None:
    if closed.consts:
        return
    text = str(closed)
    parsed = parse_jaxpr(text)
    hint = "a parameter's value has to print as an expression that the parser reads (numbers, strings, dtypes, tuples)"
    if not same_jaxpr(parsed, closed):
        raise CheckFailure(f"the text parses to another program:\n{text}\nbecomes\n{parsed}", None, hint)
    if str(parsed) != text:
        raise CheckFailure(f"the text does not print again as it was:\n{text}\nbecomes\n{parsed}", None, hint)


@check("params", None)
def check_params(call: Call, rng: np.random.Generator) -> None:
    """Parameters are hashable, in equations too."""
    _require_hashable(call.params, "", "; use tuples")
    for eqn in call.closed().jaxpr.eqns:
        _require_hashable(eqn.params, f" of {eqn.primitive.name}", "")


def _require_hashable(params: dict[str, Any], where: str, advice: str) -> None:
    for name, value in params.items():
        try:
            hash(value)
        except TypeError:
            raise CheckFailure(f"parameter {name!r}{where} is not hashable: {value!r}{advice}") from None
