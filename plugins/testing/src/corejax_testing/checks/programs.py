"""Check the primitive in programs: types, text, parameters, repeatability, and rules that modify their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import (
    ClosedJaxpr,
    UndefPrimal,
    as_array,
    batch_jaxpr,
    jvp_jaxpr,
    jvp_rules,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.programs import check_jaxpr, same_jaxpr, select_list
from corejax_explain.program_text import parse_jaxpr
from corejax_testing.arrays import direction, on_host, show
from corejax_testing.calls import Call, host
from corejax_testing.checks.compiled import translates
from corejax_testing.checks.registry import at_fault, check
from corejax_testing.outcomes import CheckFailure, NotApplicable


def _checked(program: ClosedJaxpr, what: str, rule: str) -> None:
    try:
        check_jaxpr(program)
    except (TypeError, ValueError) as error:
        raise CheckFailure(f"{what} is not well typed: {error}", rule) from error


@check("programs", "abstract_eval", dtypes=True)
def check_programs(call: Call, rng: np.random.Generator) -> None:
    """Check that its program is well typed, also after jvp and vmap."""
    closed = call.closed()
    _checked(closed, "its program", "abstract_eval")
    for got, wanted in zip(closed.out_avals, call.avals_out, strict=True):
        if got is not wanted:
            raise CheckFailure(f"staged, its result is of type {got.str_short()}, evaluated {wanted.str_short()}")
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
    """Check that the text of its program parses to the same program, also after jvp and vmap."""
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
    hint = "each parameter must print as an expression that the parser reads (numbers, strings, dtypes, tuples)"
    if not same_jaxpr(parsed, closed):
        raise CheckFailure(f"the text parses to another program:\n{text}\nbecomes\n{parsed}", None, hint)
    if str(parsed) != text:
        raise CheckFailure(f"the parsed program prints differently:\n{text}\nbecomes\n{parsed}", None, hint)


@check("params", None)
def check_params(call: Call, rng: np.random.Generator) -> None:
    """Check that parameters are hashable, also in equations."""
    _require_hashable(call.params, "", "; use tuples")
    for eqn in call.closed().jaxpr.eqns:
        _require_hashable(eqn.params, f" of {eqn.primitive.name}", "")


def _require_hashable(params: dict[str, Any], where: str, advice: str) -> None:
    for name, value in params.items():
        try:
            hash(value)
        except TypeError:
            raise CheckFailure(f"parameter {name!r}{where} is not hashable: {value!r}{advice}") from None


_PURE = "results of rules are cached: a rule must not use counters, random names or other state"


def _texts(call: Call) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Yield the texts to compare: a name, the rule at fault, and a function that makes the text."""
    yield "its program", "abstract_eval", lambda: _text(call.closed())
    for rule, transform in call.transforms().items():
        yield f"the program of its {rule} rule", rule, functools.partial(_text_after, transform, call)
    if translates(call):
        yield "its translation", "xla_translation", lambda: _lowered(call)


def _text_after(transform: Callable[[ClosedJaxpr], ClosedJaxpr], call: Call) -> str:
    return _text(transform(call.closed()))


def _text(program: ClosedJaxpr) -> str:
    """Return the program's text, with its constants."""
    return "\n".join([str(program), *(show(c) for c in program.consts)])


def _lowered(call: Call) -> str:
    lowered = corejax.jit(lambda *values: call(*values)).lower(*call.values)
    return str(lowered.as_text())


@check("repeatable", "jvp", limit=3)
def check_repeatable(call: Call, rng: np.random.Generator) -> None:
    """Check that tracing, jvp, vmap and translation give the same text each time."""
    for name, rule, make in _texts(call):
        with at_fault(rule), corejax.config.override(remember_rules=False):
            first, second = make(), make()
        if first != second:
            pairs = zip(first.splitlines(), second.splitlines(), strict=False)
            a, b = next(((x, y) for x, y in pairs if x != y), ("(shorter)", "(longer)"))
            raise CheckFailure(f"{name} is different the second time:\n    {a.strip()}\n    {b.strip()}", rule, _PURE)
    one, other = ([(e.primitive, e.params) for e in call.closed().jaxpr.eqns] for _ in range(2))
    for (primitive, p), (_, q) in zip(one, other, strict=True):
        for name in p:
            if "higher_order" not in primitive.tags and (p[name] != q[name] or hash(p[name]) != hash(q[name])):
                raise CheckFailure(f"parameter {name!r} of {primitive.name} is unequal to itself, or hashes "
                                   f"differently, the second time: {p[name]!r}", None,
                                   "give the parameter's class __eq__ and __hash__")  # fmt: skip


@check("untouched", "jvp", limit=3)
def check_untouched(call: Call, rng: np.random.Generator) -> None:
    """Check that rules modify neither the lists that they receive nor the arrays in them."""
    call.require_alone()
    tried = False
    values = [as_array(x.copy()) for x in call.values]
    if call.inexact and _is_own(jvp_rules, call):
        tangents = [as_array(direction(rng, x)) if i in call.inexact else None for i, x in enumerate(call.values)]
        rule = jvp_rules.rule_of(call.primitive)
        if all(t is not None for t in tangents) or (rule is not None and rule.flags.get("symbolic_zeros")):
            _run("jvp", jvp_rules, call, [list(values), tangents], lambda rule, a: rule(a[0], a[1], **call.params))
            tried = True
    if values and _is_own(vmap_rules, call):
        batched = [as_array(np.stack([x, x])) for x in call.values]
        _run("vmap", vmap_rules, call, [batched, [0] * len(values)], lambda rule, a: rule(2, a[0], a[1], **call.params))
        tried = True
    if call.primitive.linear_in and _is_own(transpose_rules, call) and call.primitive.multiple_results:
        cts = [as_array(direction(rng, y)) for y in host(call(*call.values))]
        linear = call.primitive.linear_in[0]
        args = [UndefPrimal(a) if i == linear else x for i, (a, x) in enumerate(zip(call.avals, values, strict=True))]
        _run("transpose", transpose_rules, call, [cts], lambda rule, a: rule(a[0], *args, **call.params))
        tried = True
    if not tried:
        raise NotApplicable("no rules of its own")


def _is_own(registry: Any, call: Call) -> bool:
    found = registry.find(call.primitive) and registry.rule_of(call.primitive)
    return found is not None and found.derived is None


def _run(kind: str, registry: Any, call: Call, lists: Sequence[list[Any]], apply: Callable[..., Any]) -> None:
    kept = [list(given) for given in lists]
    numbers = [[None if not hasattr(x, "dtype") else on_host(x).copy() for x in given] for given in lists]
    apply(registry.rule_of(call.primitive).fn, lists)
    for given, before, values in zip(lists, kept, numbers, strict=True):
        if len(given) != len(before) or any(x is not y for x, y in zip(given, before, strict=True)):
            raise CheckFailure(f"the {kind} rule changes a list that it is given", kind, "build a new list instead")
        for x, value in zip(given, values, strict=True):
            if value is not None and on_host(x).tobytes() != value.tobytes():
                raise CheckFailure(f"the {kind} rule writes into an array that it is given", kind, "arrays are "
                                   "immutable, and so are their views by `np.asarray`")  # fmt: skip
