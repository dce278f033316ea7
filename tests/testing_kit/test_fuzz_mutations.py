"""The fuzzer finds mistakes: wrong rules of every kind, in programs with right primitives, made small."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import corejax
from corejax.extend import load_everything, primitives
from corejax_testing.fuzzing import Failure, Summary, fuzz, replay
from corejax_testing.fuzzing.generation import generate
from corejax_testing.fuzzing.relations import ask
from corejax_testing.fuzzing.shrinking import shrink
from corejax_testing.fuzzing.tables import Table
from corejax_testing.parts import every_eqn, size_of
from tests.testing_kit.test_mutations import KINDS
from tests.testing_kit.toys import EXAMPLES, toy

load_everything()

FOUND = [
    ("impl", "wrong sign"),
    ("impl", "dropped term"),
    ("abstract_eval", "wrong dtype"),
    ("abstract_eval", "keeps the axis"),
    ("jvp", "missing factor"),
    ("jvp", "dropped term"),
    ("jvp", "symbolic zeros"),
    ("jvp", "a tenth of a percent"),
    ("jvp", "wrong axis"),
    ("vmap", "wrong sign"),
    ("vmap", "axes not aligned"),
    ("vmap", "batch in front only"),
    ("transpose", "wrong sign"),
    ("transpose", "missing factor of a sum"),
    ("transpose", "reversed"),
    ("xla_translation", "wrong operation"),
    ("xla_translation", "wrong factor"),
    ("partial_eval", "wrong residual"),
    ("partial_eval", "swapped results"),
    ("partial_eval_jaxpr", "missing factor"),
    ("partial_eval_jaxpr", "swapped flags"),
]


def look(name: str, programs: int = 80) -> Summary:
    """Fuzz a toy together with primitives that are right."""
    among = [primitives[n] for n in (name, "add", "sin", "mul")]
    return fuzz(among, programs=programs, most=5, most_failures=1, examples={name: EXAMPLES[name]})


def check_report(failure: Failure, name: str) -> None:
    """It is small, names the culprit, parses back, and still fails."""
    assert failure.equations <= 3, failure.report()
    program = corejax.ir.parse_jaxpr(failure.program)
    assert name in {eqn.primitive.name for eqn in every_eqn(program)}
    assert size_of(program) == failure.equations
    assert replay(failure.program, failure.values, failure.relation, failure.salt) is not None


# One of each kind; the others are `slow`.
QUICK = {
    ("impl", "dropped term"),
    ("abstract_eval", "keeps the axis"),
    ("jvp", "a tenth of a percent"),
    ("vmap", "axes not aligned"),
    ("transpose", "missing factor of a sum"),
    ("xla_translation", "wrong factor"),
    ("partial_eval", "wrong residual"),
    ("partial_eval_jaxpr", "swapped flags"),
}


@pytest.mark.parametrize(
    ("kind", "mistake"), [pytest.param(*each, marks=[pytest.mark.slow] * (each not in QUICK)) for each in FOUND]
)
def test_wrong_rule_is_found_and_made_small(kind: str, mistake: str) -> None:
    name, rule = KINDS[kind][mistake]
    with toy(name, {kind: rule}):
        summary = look(name)
        assert summary.failures
        check_report(summary.failures[0], name)
    if kind == "abstract_eval":  # the program itself has the wrong types
        return
    with toy(name):
        assert replay(
            summary.failures[0].program, summary.failures[0].values, summary.failures[0].relation,
            summary.failures[0].salt,
        ) is None  # fmt: skip


def test_impl_that_raises_is_found() -> None:
    def impl(x: Any, *, axis: int) -> Any:
        raise ZeroDivisionError("no")

    with toy("toy.rowsum", {"impl": impl}):
        (failure,) = look("toy.rowsum").failures
        assert (failure.relation, failure.equations, failure.message) == ("eager", 1, "ZeroDivisionError: no")


def test_transformation_that_raises_is_found() -> None:
    def vmap(size: int, vals: Any, dims: Any, *, axis: int) -> Any:
        raise ZeroDivisionError("no")

    with toy("toy.rowsum", {"vmap": vmap}):
        (failure,) = look("toy.rowsum").failures
        assert (failure.equations, failure.message) == (1, "ZeroDivisionError: no")


@pytest.mark.parametrize("name", ["toy.mulsin", "toy.rowsum", "toy.both"])
def test_right_rules_pass(name: str) -> None:
    with toy(name):
        assert not [failure.report() for failure in look(name, 12).failures]


def test_the_same_comes_out_again() -> None:
    name, rule = KINDS["jvp"]["missing factor"]
    reports = []
    for _ in range(2):
        with toy(name, {"jvp": rule}):
            reports.append(look(name).failures[0].report())
    assert reports[0] == reports[1]


def test_shrinking_is_bounded_and_keeps_what_failed() -> None:
    name, rule = KINDS["jvp"]["wrong sign"]
    with toy(name, {"jvp": rule}) as primitive:
        table = Table([primitive, primitives["sin"], primitives["mul"]], {name: EXAMPLES[name]})
        number, case = next(
            (k, c)
            for k, c in ((k, generate(table, 1, k, 10)) for k in range(50))
            if size_of(c.program) > 6 and _fails(c, "jvp")
        )
        again = functools.partial(generate, table, 1, number, 10)
        assert shrink(again, case, "jvp", attempts=0) is case
        small = [shrink(again, case, "jvp", attempts=n) for n in (3, 300)]
        sizes = [size_of(each.program) for each in small]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] == 1
        assert ask(small[-1], "jvp") is not None


def _fails(case: object, relation: str) -> bool:
    return ask(case, relation) is not None  # type: ignore[arg-type]
