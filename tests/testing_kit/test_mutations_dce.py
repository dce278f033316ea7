"""The kit finds wrong dce rules, and effects that partial evaluation loses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.extend import (
    ClosedJaxpr,
    Example,
    Jaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    dce_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    primitives,
)
from corejax.extend.programs import dce_rules
from corejax_testing import verify
from corejax_testing.contributions import examples_of
from tests.testing_kit import toys
from tests.testing_kit.toys import same, toy

Rule = Callable[[list[bool], JaxprEqn], Any]
F32 = np.dtype(np.float32)


pytestmark = pytest.mark.usefixtures("nothing_is_left")


def _results(primitive: Primitive, *checks: str, examples: Any = None) -> list[Any]:
    return list(verify(primitive, examples, checks=checks, quick=True))


# -- dce rules of first-party primitives -----------------------------------------------------------------------------


def _swapped(used: list[bool], eqn: JaxprEqn) -> Any:
    """Results of one type in the other order."""
    flags, small = dce_rules_before[eqn.primitive](used, eqn)
    return flags, small and small.replace(outvars=_swap(small.outvars))


def _swap(variables: list[Any]) -> list[Any]:
    for i, v in enumerate(variables):
        for w in variables[:i]:
            if v.aval is w.aval:
                return [w if x is v else v if x is w else x for x in variables]
    return variables[::-1]


def _without_effects(used: list[bool], eqn: JaxprEqn) -> Any:
    return ([False] * len(eqn.invars), None) if not any(used) else dce_rules_before[eqn.primitive](used, eqn)


def _operands_in_front(used: list[bool], eqn: JaxprEqn) -> Any:
    flags, small = dce_rules_before[eqn.primitive](used, eqn)
    return flags, small and small.replace(invars=list(eqn.invars[: len(small.invars)]))


def _flags_of_all(used: list[bool], eqn: JaxprEqn) -> Any:
    flags, small = dce_rules_before[eqn.primitive](used, eqn)
    return flags, small and small.replace(outvars=list(eqn.outvars[: len(small.outvars)]))


def _first_branch(used: list[bool], eqn: JaxprEqn) -> Any:
    """What the first branch needs; the others get it in the place of what they need."""
    if not any(used):
        return dce_rules_before[eqn.primitive](used, eqn)
    branches = eqn.params["branches"]
    needed = dce_jaxpr(branches[0], used)[1]
    smaller = tuple(_with_arguments(dce_jaxpr(b, used)[0], len([n for n in needed if n])) for b in branches)
    invars = [eqn.invars[0], *(v for v, n in zip(eqn.invars[1:], needed, strict=True) if n)]
    outvars = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    params = {"branches": smaller, "linear": (False,) * (len(invars) - 1)}
    return [True, *needed], eqn.replace(invars=invars, outvars=outvars, params=params)


def _with_arguments(program: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """So many arguments: what is bound no more reads the first."""
    jaxpr = program.jaxpr
    kept, gone = jaxpr.invars[:count], jaxpr.invars[count:]
    if not gone:
        return program
    env = dict.fromkeys(gone, kept[0])
    eqns = [e.replace(invars=[env.get(v, v) if not hasattr(v, "val") else v for v in e.invars]) for e in jaxpr.eqns]
    outs = [env.get(v, v) if not hasattr(v, "val") else v for v in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, kept, eqns, outs), program.consts)


def _one_turn(used: list[bool], eqn: JaxprEqn) -> Any:
    """A loop that looks at its body once: carries that are needed by those needed are forgotten, and stay as given."""
    params = eqn.params
    count = params["body_nconsts"]
    cond_needs = dce_jaxpr(params["cond_jaxpr"], [True])[1][params["cond_nconsts"] :]
    used = [u or c for u, c in zip(used, cond_needs, strict=True)]  # the loop still ends
    needed = dce_jaxpr(params["body_jaxpr"], used)[1][count:]
    lost = {v for v, u, n in zip(params["body_jaxpr"].jaxpr.invars[count:], used, needed, strict=True) if n and not u}
    body = params["body_jaxpr"]
    outs = [
        w if v in lost else o for v, w, o in zip(body.jaxpr.invars[count:], body.jaxpr.invars[count:],
                                                 body.jaxpr.outvars, strict=True)
    ]  # fmt: skip
    still = Jaxpr(body.jaxpr.constvars, body.jaxpr.invars, body.jaxpr.eqns, outs)
    return [True] * len(eqn.invars), eqn.replace(params={**params, "body_jaxpr": ClosedJaxpr(still, body.consts)})


def _bare(program: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr = program.jaxpr
    eqns = [e for e in jaxpr.eqns if not e.primitive.effects]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), program.consts)


def _without_inner_effects(used: list[bool], eqn: JaxprEqn) -> Any:
    flags, small = dce_rules_before[eqn.primitive](used, eqn)
    if small is None or all(used):
        return flags, small
    params = {k: _bare(v) if isinstance(v, ClosedJaxpr) else v for k, v in small.params.items()}
    if "branches" in params:
        params["branches"] = tuple(_bare(b) for b in params["branches"])
    return flags, small.replace(params=params)


dce_rules_before = dict(dce_rules)
DCE: list[tuple[str, Rule]] = [
    *((name, _swapped) for name in ("scan", "cond", "xla_call")),
    *((name, _without_effects) for name in ("scan", "cond", "while", "remat2", "xla_call", "remat_opt")),
    *((name, _without_inner_effects) for name in ("scan", "cond", "while")),
    *((name, _operands_in_front) for name in ("scan", "remat2")),
    *((name, _flags_of_all) for name in ("cond", "remat2")),
    ("cond", _first_branch),
    ("while", _one_turn),
]


@pytest.mark.parametrize(("name", "rule"), DCE)
def test_wrong_dce_rule_is_caught(name: str, rule: Rule) -> None:
    dce_rules.register(primitives[name], rule, override=True)
    found = [r for r in _results(primitives[name], "dce", "kept_effects") if r.failed]
    assert found and found[0].rule == "dce", [r.report() for r in found]


# -- a toy with a dce rule of its own --------------------------------------------------------------------------------


def _right(used: list[bool], eqn: JaxprEqn) -> Any:
    """`both` with its second result only is a product."""
    if not any(used):
        return [False, False], None
    if used == [False, True]:
        return [True, True], JaxprEqn(lax.mul_p, list(eqn.invars), [eqn.outvars[1]], {})
    return [True, True], eqn


def _as_sum(used: list[bool], eqn: JaxprEqn) -> Any:
    flags, small = _right(used, eqn)
    return flags, small and (small.replace(primitive=lax.add_p) if small.primitive is lax.mul_p else small)


def _squared(used: list[bool], eqn: JaxprEqn) -> Any:
    flags, small = _right(used, eqn)
    return flags, small and (small.replace(invars=[eqn.invars[0]] * 2) if small.primitive is lax.mul_p else small)


def _not_needed(used: list[bool], eqn: JaxprEqn) -> Any:
    return ([True, False], eqn) if used == [True, False] else _right(used, eqn)


def _crossed(used: list[bool], eqn: JaxprEqn) -> Any:
    return [True, True], eqn.replace(outvars=eqn.outvars[::-1]) if not all(used) else eqn


@pytest.mark.parametrize(("rule", "right"), [(_right, True), *((f, False) for f in (_as_sum, _squared, _crossed))])
def test_dce_rule_of_a_toy(rule: Rule, right: bool) -> None:
    with toy("toy.both") as primitive:
        dce_rules[primitive] = rule
        (result,) = _results(primitive, "dce", examples=toys.EXAMPLES["toy.both"])
    assert (result.status, result.rule) == (("passed", None) if right else ("failed", "dce")), result.report()


# -- effects under partial evaluation ---------------------------------------------------------------------------------


def _told(**rules: Any) -> Any:
    """A primitive with an effect and two operands."""
    primitive = Primitive(
        "toy.told", effects=("toy.tell",), impl=lambda x, y: x + y, abstract_eval=same,
        jvp=lambda p, t: (primitive.bind(*p), lax.add(*t)),
    )  # fmt: skip
    for kind, rule in rules.items():
        {"split": partial_eval_jaxpr_rules, "trace": partial_eval_rules}[kind].register(primitive, rule)
    example = Example((ShapedArray((3,), F32), ShapedArray((3,), F32)))
    return _results(primitive, "kept_effects", examples=[example])[0]


def _later(eqn: JaxprEqn, *, known: bool, later: bool) -> Any:
    twin = eqn.replace(outvars=[corejax.extend.Var(v.aval) for v in eqn.outvars], invars=[eqn.invars[0]] * 2)
    quiet = eqn.replace(primitive=lax.add_p)
    return (twin if known else None), (eqn if later else quiet), [True], []


EFFECTS: dict[str, dict[str, Any]] = {
    "lost in the equation": {"split": lambda unks, eqn: _later(eqn, known=False, later=False)},
    "lost where the first is unknown": {"split": lambda unks, eqn: _later(eqn, known=False, later=not unks[0])},
    "twice": {"split": lambda unks, eqn: _later(eqn, known=not unks[0], later=True)},
    "lost on the tape": {"trace": lambda trace, args: trace.record(lax.add_p, list(args), {})},
    "lost on the tape where both are unknown": {
        "trace": lambda trace, args: trace.record(
            lax.add_p if all(map(trace.is_unknown, args)) else primitives["toy.told"], list(args), {}
        )
    },
}


def test_right_effect_passes() -> None:
    assert _told().status == "passed"


@pytest.mark.parametrize("mistake", EFFECTS)
def test_lost_effect_is_caught(mistake: str) -> None:
    result = _told(**EFFECTS[mistake])
    assert result.failed and result.rule in ("partial_eval_jaxpr", "partial_eval"), result.report()


def _split_without(half: int) -> Any:
    """A split whose one half has lost the effects of its programs."""

    def make(name: str) -> Any:
        right = partial_eval_jaxpr_rules.rule_of(primitives[name]).fn

        def rule(unknowns: Any, eqn: JaxprEqn) -> Any:
            found = list(right(unknowns, eqn))
            listed = found[half] if isinstance(found[half], list) else [found[half]]
            quiet = [e and e.replace(params=_quiet_params(e.params)) for e in listed]
            found[half] = quiet if isinstance(found[half], list) else quiet[0]
            return tuple(found)

        return rule

    return make


def _quiet_params(params: dict[str, Any]) -> dict[str, Any]:
    quiet = {k: _bare(v) if isinstance(v, ClosedJaxpr) else v for k, v in params.items()}
    if "branches" in quiet:
        quiet["branches"] = tuple(_bare(b) for b in quiet["branches"])
    return quiet


@pytest.mark.parametrize("name", ["scan", "cond", "while", "remat2", "xla_call"])
@pytest.mark.parametrize("half", [0, 1])
def test_effects_lost_by_a_split_are_caught(name: str, half: int) -> None:
    if partial_eval_jaxpr_rules.rule_of(primitives[name]) is None:
        pytest.skip("no rule of its own")
    rule = _split_without(half)(name)
    partial_eval_jaxpr_rules.register(primitives[name], rule, override=True)
    (result,) = _results(primitives[name], "kept_effects")
    assert (result.failed, result.rule) == (True, "partial_eval_jaxpr"), result.report()


def test_first_party_examples_have_what_the_mutations_change() -> None:
    assert all(examples_of(name) for name, _ in DCE)
