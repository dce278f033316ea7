"""Which rule a report names: the one that is wrong, whichever check met it first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import corejax
import corejax.lax as lax
from corejax.cli import main
from corejax.extend import Example, Primitive, ShapedArray, defjvp, stage_closed, xla_translations
from corejax.extend.messages import NotLinearError
from corejax_testing import verify
from corejax_testing.checks.registry import rule_at_fault, rule_to_blame
from corejax_testing.report import print_report
from tests.testing_kit.toys import EXAMPLES, RIGHT, mulsin_jvp, mulsin_vmap, same, toy


def _raises(*args: Any, **params: Any) -> Any:
    raise KeyError("a mistake")


def _bent(primals: Any, tangents: Any) -> Any:
    """The tangent is squared."""
    out, tangent = mulsin_jvp(primals, tangents)
    return out, lax.mul(tangent, tangent)


def _curved(primals: Any, tangents: Any) -> Any:
    """A function without transpose is applied to the tangent."""
    out, tangent = mulsin_jvp(primals, tangents)
    return out, lax.sin(tangent)


def _affine(primals: Any, tangents: Any) -> Any:
    out, tangent = mulsin_jvp(primals, tangents)
    return out, lax.add(tangent, 0.1)


WRONG: dict[str, tuple[str, Callable[..., Any]]] = {
    "impl raises": ("impl", _raises),
    "impl gives a list": ("impl", lambda x, y: (x * np.sin(y)).tolist()),
    "impl of another dtype": ("impl", lambda x, y: x * np.sin(y, dtype=np.float64)),
    "impl of another shape": ("impl", lambda x, y: (x * np.sin(y))[..., None]),
    "abstract eval raises": ("abstract_eval", _raises),
    "abstract eval of another shape": ("abstract_eval", lambda x, y: same(x, y).update(shape=(*x.shape, 1))),
    "abstract eval of another dtype": ("abstract_eval", lambda x, y: same(x, y).update(dtype=np.float16)),
    "jvp raises": ("jvp", _raises),
    "jvp of products": ("jvp", _bent),
    "jvp of a curve": ("jvp", _curved),
    "jvp with a constant": ("jvp", _affine),
    "vmap raises": ("vmap", _raises),
    "vmap of the operands as they are": ("vmap", lambda size, vals, dims: (lax.mul(vals[0], vals[0]), 0)),
    "vmap without dimension": ("vmap", lambda size, vals, dims: (vals[0], None)),
    "transpose raises": ("transpose", _raises),
    "transpose of too few": ("transpose", lambda ct, x, y: [ct]),
    "transpose of nothing": ("transpose", lambda ct, x, y: [None, None]),
    "translation raises": ("xla_translation", _raises),
    "translation of an unknown operation": ("xla_translation", lambda ctx, a, v: ctx.op("nosuch", *v, out=a[0])),
    "translation of another function": ("xla_translation", lambda ctx, a, v: ctx.op("add", *v, out=a[0])),
}
WITHOUT = {"jvp": ("xla",), "vmap": ("xla",), "transpose": ("xla",)}  # programs have no part of these rules
CHECKS = ("examples", "types", "repeatable", "jvp", "linearity", "transpose", "vjp", "vmap", "zero_size", "xla")


@pytest.mark.parametrize("mistake", WRONG)
def test_every_failure_names_the_rule_at_fault(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    kind, rule = WRONG[mistake]
    with toy("toy.mulsin", {kind: rule}) as primitive:
        checks = [check for check in CHECKS if check not in WITHOUT.get(kind, ())]
        results = list(verify(primitive, EXAMPLES["toy.mulsin"][:1], checks=checks, quick=True))
    failed = [r for r in results if r.failed]
    assert failed, mistake
    assert {r.rule for r in failed} == {kind}, [(r.check, r.rule, r.message) for r in failed]
    assert "test_attribution.py" in failed[0].where or "toys.py" in failed[0].where
    assert not failed[0].after and "operand 0" in failed[0].call
    print_report(results)
    shown = capsys.readouterr().out
    assert failed[0].report() in shown
    assert sum(r.report() in shown for r in failed) == sum(not r.after for r in failed)


def test_a_tracer_that_a_partial_eval_rule_has_made_of_a_known_result() -> None:
    error = corejax.errors.UnexpectedTracerError("a tracer escaped")
    with toy("toy.mulsin") as primitive:
        assert rule_at_fault(error, primitive) is None
    with toy("toy.mulsin", {"partial_eval": lambda trace, args: [trace.record(primitive, args, {})]}) as primitive:
        assert rule_at_fault(error, primitive) == "partial_eval"


def test_a_platforms_translation_is_named_with_its_line() -> None:
    with toy("toy.mulsin") as primitive:
        wrong = lambda ctx, avals, vals: ctx.op("add", *vals, out=avals[0])
        xla_translations.register(primitive, wrong, platform=corejax.default_backend())
        (result,) = verify(primitive, EXAMPLES["toy.mulsin"][:1], checks=["xla"], quick=True)
    assert (result.failed, result.rule) == (True, "xla_translation")
    assert "test_attribution.py" in result.where


def test_programs_do_not_keep_operands_that_have_no_value() -> None:
    """Staged, a product of two tangents was a program with a placeholder in it, found when it was compiled."""
    with toy("toy.mulsin", {"jvp": _bent}) as primitive:

        def fun(x: Any) -> Any:
            return primitive.bind(x, x)

        with pytest.raises(NotLinearError, match="JVP rules of primitives") as caught:
            corejax.make_jaxpr(corejax.grad(fun))(1.5)
        assert "applies mul at" in "".join(caught.value.__notes__)
        with pytest.raises(NotLinearError) as caught:
            corejax.grad(fun)(1.5)
        notes = "".join(caught.value.__notes__)
        assert "test_attribution.py" in notes and "transpose rule of primitive 'mul'" not in notes
        assert isinstance(caught.value, TypeError)


def test_a_missing_transpose_says_that_a_jvp_rule_may_be_wrong() -> None:
    with toy("toy.mulsin", {"jvp": _curved}) as primitive:
        with pytest.raises(NotImplementedError, match="it has to be linear in the tangents"):
            corejax.grad(lambda x: primitive.bind(x, x))(1.5)


def test_a_primitive_declared_linear_that_is_not() -> None:
    with toy("toy.mulsin", linear_in=(0, 1)) as primitive:
        (result,) = verify(primitive, EXAMPLES["toy.mulsin"][:1], checks=["transpose"])
    assert result.failed and result.rule is None and "linear_in" in result.hint and "toys.py" in result.hint


def test_the_command_names_no_line_of_its_own() -> None:
    program = (
        "from corejax.cli import main\n"
        "import tests.testing_kit.test_attribution as t\n"
        "import corejax_testing.selection as s\n"
        "with t.toy('toy.mulsin', {'jvp': lambda xs, ts: (xs[0], 1.5)}) as p:\n"
        "    s.planned = lambda names, checks: [(p, ['vjp', 'jvp'])]\n"
        "    import corejax_testing.runner as r\n"
        "    r.examples_of = lambda name: t.EXAMPLES[name]\n"
        "    main()\n"
    )
    run = subprocess.run([sys.executable, "-c", program, "verify", "mul"], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "toy.mulsin: vjp" in run.stdout, run.stdout + run.stderr
    assert "needed at" not in run.stdout, run.stdout


def test_primitives_given_twice_are_all_taken() -> None:
    given = ["--primitives", "sin,neg", "--primitives", "mul"]
    out = CliRunner().invoke(main, ["fuzz", *given, "--programs", "3", "--relation", "types", "--json"])
    assert out.exit_code == 0, out.output
    assert {"sin", "neg", "mul"} <= set(out.output.replace('"', " ").split()), out.output


def test_right_rules_stay_right() -> None:
    with toy("toy.mulsin", RIGHT["toy.mulsin"]) as primitive:
        closed = stage_closed(lambda x, y: [primitive.bind(x, y)], [ShapedArray((3,), np.dtype(np.float32))] * 2)
    assert len(closed.eqns) == 1


def _cut(axis_size: int, vals: Any, dims: Any) -> Any:
    """The right batch, without derivative in the first operand."""
    return mulsin_vmap(axis_size, [lax.stop_gradient(vals[0]), vals[1]], dims)


def test_wrong_derivatives_of_a_batch_are_the_vmap_rules_fault() -> None:
    with toy("toy.mulsin", {"vmap": _cut}) as primitive:
        [result] = verify(primitive, EXAMPLES["toy.mulsin"][:1], checks=["pairs"], quick=True)
    assert (result.failed, result.rule) == (True, "vmap"), result.report()


def test_without_a_transpose_rule_reverse_mode_is_the_jvp_rules_fault() -> None:
    with toy("toy.mulsin", {}) as primitive:
        square = Primitive("toy.squared_elsewhere", impl=np.square, abstract_eval=same)
        defjvp(square, lambda t, x: lax.mul(t, lax.mul(2.0, x)))
        assert (rule_to_blame(square, "transpose"), rule_to_blame(square, "vmap")) == ("jvp", "vmap")
        assert rule_to_blame(primitive, "transpose") == "transpose"


def test_an_impl_unlike_the_decomposition_is_named_before_the_derivatives() -> None:
    with toy("toy.mulsin", {}):
        twice = Primitive(
            "toy.twice_of_three", impl=lambda x: 3 * x, abstract_eval=same, decomposition=lambda x: lax.add(x, x)
        )
        defjvp(twice, lambda t, x: lax.add(t, t))
        example = Example((ShapedArray((3,), np.float32),))
        values, jvp = verify(twice, [example], checks=["values", "jvp"], quick=True)
    assert values.failed and values.rule == "impl" and "against the decomposition" in values.message, values.report()
    assert jvp.after == "values"
