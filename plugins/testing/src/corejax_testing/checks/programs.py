"""The primitive in programs: types, text, parameters, effects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import corejax
from corejax.extend import (
    ClosedJaxpr,
    ShapedArray,
    batch_jaxpr,
    check_jaxpr,
    dce,
    jvp_jaxpr,
    jvp_rules,
    stage_closed,
    vmap_rules,
)
from corejax_testing.arrays import is_inexact
from corejax_testing.calls import Call
from corejax_testing.checks.registry import check
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
    nonzeros = [is_inexact(a.dtype) for a in call.avals]
    if any(nonzeros) and jvp_rules.find(call.primitive) is not None:
        with _blamed("jvp"):
            moved, out_nonzeros = jvp_jaxpr(closed, nonzeros)
        _checked(moved, "the program of its jvp rule", "jvp")
        tangents = moved.out_avals[len(closed.out_avals) :]
        primals = [a for a, nz in zip(closed.out_avals, out_nonzeros, strict=True) if nz]
        for t, a in zip(tangents, primals, strict=True):
            if (t.shape, t.dtype) != (a.shape, a.dtype):
                raise CheckFailure(
                    f"the jvp rule's tangent is of type {t.str_short()}, its result {a.str_short()}", "jvp"
                )
    if call.values and vmap_rules.find(call.primitive) is not None:
        with _blamed("vmap"):
            batched, _ = batch_jaxpr(closed, 3, [0] * len(call.values))
        _checked(batched, "the program of its vmap rule", "vmap")


@contextmanager
def _blamed(rule: str) -> Iterator[None]:
    """What raises is this rule's fault."""
    try:
        yield
    except corejax.errors.MissingRuleError:
        raise
    except Exception as error:
        raise CheckFailure(f"{type(error).__name__}: {error}", rule) from error


@check("text", None)
def check_text(call: Call, rng: np.random.Generator) -> None:
    """Its program prints to text that parses to the same program."""
    closed = call.closed()
    if closed.consts:
        raise NotApplicable("the program has constants")
    text = str(closed)
    parsed = corejax.ir.parse_jaxpr(text)
    if not corejax.ir.same_jaxpr(parsed, closed):
        raise CheckFailure(f"the text parses to another program:\n{text}\nbecomes\n{parsed}")
    if str(parsed) != text:
        raise CheckFailure(f"the text does not print again as it was:\n{text}\nbecomes\n{parsed}")


@check("params", None)
def check_params(call: Call, rng: np.random.Generator) -> None:
    """Parameters are hashable, and equal ones have equal hashes in equations too."""
    for name, value in call.params.items():
        try:
            hash(value)
        except TypeError:
            raise CheckFailure(f"parameter {name!r} is not hashable: {value!r}; use tuples") from None
    for eqn in call.closed().jaxpr.eqns:
        for name, value in eqn.params.items():
            try:
                hash(value)
            except TypeError:
                raise CheckFailure(f"parameter {name!r} of {eqn.primitive.name} is not hashable: {value!r}") from None


@check("effects", None, limit=2)
def check_effects(call: Call, rng: np.random.Generator) -> None:
    """Effects stay when nobody uses the results, in a batched program too."""
    if not call.primitive.effects:
        raise NotApplicable("it has no effects")
    closed = call.closed()
    missing = call.primitive.effects - set(map(str, closed.jaxpr.effects))
    if missing:
        raise CheckFailure(f"its program does not have its effects {sorted(missing)}")
    programs: list[tuple[str, Any, str | None]] = [("", call.avals, None)]
    if call.values:
        programs.append(("batched", tuple(a.update(shape=(2, *a.shape)) for a in call.avals), "vmap"))
    for name, avals, rule in programs:

        def unused(*args: Any, name: str = name) -> list[Any]:
            (corejax.vmap(call.__call__) if name else call)(*args)
            return []

        _has_effect(stage_closed(unused, avals), call, name, rule)


def _has_effect(program: ClosedJaxpr, call: Call, name: str, rule: str | None) -> None:
    trimmed = dce(program.jaxpr)
    if not any(call.primitive.effects & set(map(str, eqn.effects)) for eqn in trimmed.eqns):
        raise CheckFailure(f"dce drops the {name + ' ' if name else ''}application with its effects", rule)


@check("zero_size", None)
def check_zero_size(call: Call, rng: np.random.Generator) -> None:
    """Empty operands of an elementwise primitive give empty results."""
    if "elementwise" not in call.primitive.tags or not call.values:
        raise NotApplicable("not elementwise")
    shape = (0, 2)
    empty = call.at([np.zeros(shape, x.dtype) if x.ndim else x for x in call.values])
    if not any(x.ndim for x in call.values):
        empty = call.at([np.zeros(shape, x.dtype) for x in call.values])
    for out, was in zip(empty(*empty.values), call.avals_out, strict=True):
        aval = ShapedArray(np.shape(out), np.asarray(out).dtype)
        if aval.size or aval.dtype != was.dtype:
            raise CheckFailure(f"of operands of shape {shape} the result is of type {aval.str_short()}")
