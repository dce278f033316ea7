"""Rules are functions: the same program twice, and nothing that they are given is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import ClosedJaxpr, UndefPrimal, as_array, jvp_rules, transpose_rules, vmap_rules
from corejax_testing.arrays import direction, on_host, show
from corejax_testing.calls import Call, host
from corejax_testing.checks.compiled import translates
from corejax_testing.checks.registry import at_fault, check
from corejax_testing.outcomes import CheckFailure, NotApplicable

_PURE = "rules are called once and their results kept: no counters, no random names, no state"


def _texts(call: Call) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Program, rule at fault, and how it is made."""
    yield "its program", "abstract_eval", lambda: _text(call.closed())
    for rule, transform in call.transforms().items():
        yield f"the program of its {rule} rule", rule, lambda transform=transform: _text(transform(call.closed()))
    if translates(call):
        yield "its translation", "xla_translation", lambda: _lowered(call)


def _text(program: ClosedJaxpr) -> str:
    """The program with its constants."""
    return "\n".join([str(program), *(show(c) for c in program.consts)])


def _lowered(call: Call) -> str:
    lowered = corejax.jit(lambda *values: call(*values)).lower(*call.values)
    return str(lowered.as_text())


@check("repeatable", "jvp", limit=3)
def check_repeatable(call: Call, rng: np.random.Generator) -> None:
    """The same program is traced, differentiated, batched and translated to the same text each time."""
    for name, rule, make in _texts(call):
        with at_fault(rule), corejax.config.override(remember_rules=False):
            first, second = make(), make()
        if first != second:
            pairs = zip(first.splitlines(), second.splitlines(), strict=False)
            a, b = next(((x, y) for x, y in pairs if x != y), ("(shorter)", "(longer)"))
            raise CheckFailure(f"{name} differs the second time:\n    {a.strip()}\n    {b.strip()}", rule, _PURE)
    one, other = ([(e.primitive, e.params) for e in call.closed().jaxpr.eqns] for _ in range(2))
    for (primitive, p), (_, q) in zip(one, other, strict=True):
        for name in p:
            if "higher_order" not in primitive.tags and (p[name] != q[name] or hash(p[name]) != hash(q[name])):
                raise CheckFailure(f"parameter {name!r} of {primitive.name} is unequal to itself, or hashes "
                                   f"differently, the second time: {p[name]!r}", None,
                                   "give the parameter's class __eq__ and __hash__")  # fmt: skip


@check("untouched", "jvp", limit=3)
def check_untouched(call: Call, rng: np.random.Generator) -> None:
    """Rules change neither the lists that they are given nor the arrays in them."""
    call.require_alone()
    tried = False
    values = [as_array(x.copy()) for x in call.values]
    if call.inexact and _is_own(jvp_rules, call):
        tangents = [as_array(direction(rng, x)) if i in call.inexact else None for i, x in enumerate(call.values)]
        if all(t is not None for t in tangents) or jvp_rules.rule_of(call.primitive).flags.get("symbolic_zeros"):
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
            raise CheckFailure(f"the {kind} rule changes a list that it is given", kind, "make a list of your own")
        for x, value in zip(given, values, strict=True):
            if value is not None and on_host(x).tobytes() != value.tobytes():
                raise CheckFailure(f"the {kind} rule writes into an array that it is given", kind, "arrays are "
                                   "immutable, also where `np.asarray` shows what is inside")  # fmt: skip
