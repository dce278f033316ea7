"""Effects: what an application does beyond its results survives dce, whatever it has been transformed by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import corejax
from corejax.extend import ClosedJaxpr, get_aval, jvp_rules, stage_closed, vmap_rules
from corejax.extend.plugins import exported
from corejax.extend.programs import dce
from corejax_testing.arrays import direction
from corejax_testing.calls import Call, host
from corejax_testing.checks.compiled import has_backend
from corejax_testing.checks.registry import check
from corejax_testing.finite import Function
from corejax_testing.outcomes import CheckFailure, NotApplicable


@check("effects", None, limit=2)
def check_effects(call: Call, rng: np.random.Generator) -> None:
    """Effects stay when nobody uses the results, also under vmap, jvp, vjp and jit, and in bodies of cond and scan."""
    if not call.primitive.effects:
        raise NotApplicable("it has no effects")
    missing = call.primitive.effects - set(map(str, call.closed().jaxpr.effects))
    if missing:
        raise CheckFailure(f"its program does not have its effects {sorted(missing)}")
    for name, rule, fun, args in _programs(call, rng):

        def unused(*values: Any, fun: Function = fun) -> list[Any]:
            fun(*values)
            return []

        avals = tuple(get_aval(x) for x in args)
        _require_effect(stage_closed(unused, avals), call, name, rule)


def _programs(call: Call, rng: np.random.Generator) -> Iterator[tuple[str, str | None, Function, Any]]:
    """Name, rule at fault, the function and its arguments."""
    yield "", None, call, call.values
    if has_backend():
        yield "jitted ", "xla_translation", corejax.jit(lambda *a: call(*a)), call.values
    if call.values and vmap_rules.find(call.primitive) is not None:
        yield "batched ", "vmap", corejax.vmap(call.__call__), [np.stack([x, x]) for x in call.values]
    if jvp_rules.find(call.primitive) is not None:
        try:
            fun, xs, _ = call.moving()
        except NotApplicable:
            pass
        else:
            ts, cts = [direction(rng, x) for x in xs], [np.ones_like(y) for y in host(fun(*xs))]
            yield "differentiated (jvp) ", "jvp", lambda *a: corejax.jvp(fun, a, tuple(ts)), xs
            yield "differentiated (vjp) ", "jvp", _pullback(fun, cts), xs
    if exported("lax.cond") is not None and call.values:
        yield "conditional ", None, lambda *a: corejax.lax.cond(True, call, call, *a), call.values
        rows = [np.stack([x, x]) for x in call.values]
        yield "scanned ", None, lambda *a: corejax.lax.scan(lambda c, row: (c, call(*row)), (), a), rows


def _pullback(fun: Function, cts: list[Any]) -> Callable[..., Any]:
    return lambda *a: corejax.vjp(lambda *x: fun(*x), *a)[1](cts)


def _require_effect(program: ClosedJaxpr, call: Call, name: str, rule: str | None) -> None:
    trimmed = dce(program.jaxpr)
    if not any(call.primitive.effects & set(map(str, eqn.effects)) for eqn in trimmed.eqns):
        raise CheckFailure(f"dce drops the {name}application with its effects", rule, "bind a primitive with the same "
                           "effects in the rule")  # fmt: skip
