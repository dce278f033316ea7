"""`corejax fuzz`: what it builds, what it lets pass, what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result

import corejax
from corejax.cli import main
from corejax.extend import ClosedJaxpr, load_everything, primitives
from corejax_testing.fuzzing import Case, Failure, fuzz, replay, session
from corejax_testing.fuzzing import tables as tables_module
from corejax_testing.fuzzing.builder import Unfit
from corejax_testing.fuzzing.generation import generate
from corejax_testing.fuzzing.relations import RELATIONS, ask
from corejax_testing.fuzzing.reporting import literal, parsed
from corejax_testing.fuzzing.tables import Table
from corejax_testing.outcomes import NotApplicable
from corejax_testing.parts import every_eqn
from corejax_testing.selection import chosen
from tests.testing_kit import test_mutations as mutations
from tests.testing_kit.toys import EXAMPLES, toy

load_everything()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fuzz", *arguments])


@pytest.fixture(scope="module")
def table() -> Table:
    return Table(chosen([]))


def programs(table: Table, seed: int, count: int) -> list[Case | None]:
    found: list[Case | None] = []
    for number in range(count):
        try:
            found.append(generate(table, seed, number, 10))
        except Unfit:
            found.append(None)
    return found


def made(text: str, *values: Any, salt: int = 0) -> Case:
    return parsed(text, values, salt)


# -- programs ----------------------------------------------------------------------------------------------------


def test_first_party_rules_pass_a_slice() -> None:
    summary = fuzz(chosen([]), seed=2024, programs=30)
    assert not [failure.report() for failure in summary.failures]
    assert summary.programs >= 27
    assert {name for name in RELATIONS if name != "stablehlo"} <= {name.split(" of ")[0] for name in summary.asked}


def test_every_primitive_with_examples_is_used(table: Table) -> None:
    cases = [case for case in programs(table, 3, 250) if case is not None]
    seen = {eqn.primitive.name for case in cases for eqn in every_eqn(case.program)}
    missing = {p.name for p in table.primitives} - seen
    assert len(missing) <= len(table.primitives) // 10, missing
    assert {"cond", "scan", "xla_call"} <= seen


def test_programs_depend_on_seed_and_number_alone(table: Table) -> None:
    first, second = programs(table, 7, 8), programs(Table(chosen([])), 7, 8)[::-1]
    for a, b in zip(first, second[::-1], strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert str(a.program) == str(b.program)
            assert all(x.tobytes() == y.tobytes() for x, y in zip(a.values, b.values, strict=True))
    assert {str(c.program) for c in first if c} != {str(c.program) for c in programs(table, 8, 8) if c}


def test_programs_are_closed_finite_and_parse_back(table: Table) -> None:
    for case in programs(table, 5, 30):
        if case is not None and "<opaque " not in str(case.program):  # a function as a parameter has no text
            again = corejax.ir.parse_jaxpr(str(case.program))
            assert isinstance(again, ClosedJaxpr) or not again.constvars
            assert corejax.ir.same_jaxpr(again, case.program)
            assert all(np.all(np.isfinite(x)) for x in case.outs() if x.dtype.kind == "f")


def test_only_the_primitives_asked_for_besides_glue() -> None:
    narrow = Table([primitives["sin"], primitives["scan"]])
    seen = {e.primitive.name for c in programs(narrow, 0, 20) if c for e in every_eqn(c.program)}
    assert {"sin", "scan"} <= seen
    assert not seen & {"tan", "argmax", "dot_general"}


# -- no false alarms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        # One ulp decides: what rounding decides is not compared.
        ("{ lambda ; a:f32[1]. let b:f32[1] = sin a\n c:bool[1] = lt b b\n in (c,) }", [np.ones(1, np.float32)]),
        ("{ lambda ; a:f32[1]. let b:f32[1] = mul a 3.0:f32[]\n c:f32[1] = floor b\n in (c,) }",
         [np.array([1 / 3], np.float32)]),
        # A tie has several derivatives.
        ("{ lambda ; a:f32[1] b:f32[1]. let c:f32[1] = clamp a a b in (c,) }",
         [np.full(1, -1, np.float32), np.ones(1, np.float32)]),
        ("{ lambda ; a:f64[1]. let b:f64[1] = max a 0.0:f64[] in (b,) }", [np.zeros(1)]),
        # Everything cancels.
        ("{ lambda ; a:f32[3]. let b:f32[3] = exp a\n c:f32[3] = log b\n d:f32[3] = sub c a\n in (d,) }",
         [np.array([1.1, 2.3, 4.7], np.float32)]),
        ("{ lambda ; a:f32[1]. let b:f32[1] = sub a a\n c:f32[1] = div b b\n in (c,) }", [np.ones(1, np.float32)]),
    ],
)  # fmt: skip
def test_what_rounding_decides_is_no_failure(text: str, values: list[Any]) -> None:
    for relation in [*RELATIONS, "jit of vjp", "jvp of vjp", "vjp of vmap"]:
        try:
            assert ask(made(text, *values), relation) is None
        except NotApplicable:
            continue


def test_bounds_see_conditioning_and_thresholds() -> None:
    well = made("{ lambda ; a:f64[1]. let b:f64[1] = sin a in (b,) }", np.ones(1))
    ill = made("{ lambda ; a:f64[1]. let b:f64[1] = mul a 1e8:f64[]\n c:f64[1] = sin b\n in (c,) }", np.ones(1))
    threshold = "{ lambda ; a:f64[1]. let b:f64[1] = mul a 2.0:f64[]\n c:bool[1] = ge b 2.0:f64[]\n in (c,) }"
    step = made(threshold, np.ones(1))
    assert 0 < well.bounds()[0][0] < 1e-8 < ill.bounds()[0][0] < 1e-2
    assert np.isinf(step.bounds()[0][0])
    assert step.at([np.full(1, 1.1)]).bounds()[0][0] == 0


def test_what_the_interpreter_does_not_know_is_no_failure() -> None:
    sin = made("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }", np.arange(3, dtype=np.float32))
    assert ask(sin, "stablehlo") is None
    by_lapack = "{ lambda ; a:f32[1,1]. let b:f32[1,1] = cholesky[symmetrize_input=False] a in (b,) }"
    with pytest.raises(NotApplicable, match="custom calls"):
        ask(made(by_lapack, np.ones((1, 1), np.float32)), "stablehlo")
    assert ask(sin, "stablehlo") is None


# -- reports -----------------------------------------------------------------------------------------------------


def test_literals_are_exact() -> None:
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.int8, np.uint32, np.bool_):
        x = np.array([[0, 1, 3.14159]], np.float64).astype(dtype)
        again = eval(literal(x), {"np": np, "ml_dtypes": ml_dtypes})
        assert (again.dtype, again.shape, again.tobytes()) == (x.dtype, x.shape, x.tobytes())
    assert eval(literal(np.zeros((2, 0), np.float32)), {"np": np}).shape == (2, 0)
    assert np.isnan(eval(literal(np.array([np.nan, -np.inf])), {"np": np})).tolist() == [True, False]


def test_replay_says_what_is_wrong_with_its_arguments() -> None:
    text = "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }"
    assert replay(text, [np.ones(3, np.float32)], "jit of vjp") is None
    with pytest.raises(TypeError, match="takes 1 operands, got 0"):
        replay(text, [], "jit")
    with pytest.raises(TypeError, match=r"operand 0 is of type float64\[3\], not f32\[3\]"):
        replay(text, [np.ones(3)], "jit")
    with pytest.raises(KeyError):
        replay(text, [np.ones(3, np.float32)], "typo")


def test_a_program_whose_parameters_have_no_text_says_so() -> None:
    failure = Failure(
        "jit", "wrong", "{ lambda ; a:f32[]. let b:f32[] = f[g=<opaque g>] a in (b,) }", (), 0, 1, 1, 0, 5
    )
    assert "not from its text" in failure.report()
    assert "corejax fuzz --seed 0 --first 5 --programs 1" in failure.report()


def test_fuzz_says_what_is_wrong_with_its_arguments() -> None:
    with pytest.raises(ValueError, match="number of programs, a number of seconds"):
        fuzz([primitives["sin"]])
    with pytest.raises(ValueError, match="no primitive has examples"):
        fuzz([primitives["sin"]][:0], programs=1)


# -- the command -------------------------------------------------------------------------------------------------


def test_command_prints_a_summary() -> None:
    done = run("--programs", "5", "--primitives", "sin,mul", "--seed", "3")
    assert done.exit_code == 0, done.output
    assert "programs/s" in done.output
    assert "# 0 failures" in done.output


def test_json() -> None:
    done = run("--programs", "4", "--primitives", "sin", "--json", "--relation", "text")
    described = json.loads(done.output)
    assert (described["programs"], described["failures"], described["relations"]) == (4, [], {"text": 4})
    assert described["primitives"]["sin"] > 0
    assert (described["format"], described["version"]) == ("corejax-fuzz", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--primitives", "sinn"], "there is no plugin and no primitive named 'sinn'; did you mean 'sin'?"),
        (["--relation", "jit of typo"], "there is no relation 'jit of typo'"),
    ],
)
def test_wrong_names(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.output


def test_list_relations() -> None:
    done = run("--list-relations")
    assert done.exit_code == 0
    assert all(name in done.output for name in (*RELATIONS, "vmap, jvp", "scan"))


def test_failure_is_shown_with_program_and_snippet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "examples_of", lambda name: EXAMPLES.get(name, []))
    with toy("toy.mulsin", {"jvp": mutations.JVP["wrong sign"][1]}):
        done = run("--primitives", "toy.mulsin", "--programs", "5", "--max-failures", "1")
        assert done.exit_code == 1
        assert "= toy.mulsin" in done.output
        assert "corejax fuzz --seed 0 --first 0 --programs 1 --primitives toy.mulsin\n" in done.output
        again = run("--primitives", "toy.mulsin", "--seed", "0", "--first", "0", "--programs", "1", "--json")
        (failure,) = json.loads(again.output)["failures"]
        assert failure["equations"] == 1
        shown: list[Any] = []
        exec(failure["snippet"], {"print": shown.append})
        assert shown[0] == failure["message"]


def test_nothing_is_imported_to_list_commands() -> None:
    code = (
        "import sys, corejax.plugins as p\nfrom corejax.cli import main\n"
        "from click.testing import CliRunner\nassert 'fuzz' in CliRunner().invoke(main, ['--help']).output\n"
        "print(sorted(m for m in sys.modules if m.startswith(('hypothesis', 'jaxlib'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_powers_of_two_have_no_derivatives() -> None:
    """A dtype without zero, signs and sums is no dtype of tangents, at the beginning of a program or inside it."""
    text = """
    {{ lambda ; a:{dtype}[2]. let
        b:f8_e8m0fnu[2] = convert_element_type[new_dtype=float8_e8m0fnu weak_type=False] a
        c:f32[2] = convert_element_type[new_dtype=float32 weak_type=False] b
      in (c,) }}
    """
    for dtype, value in (("f32", np.float32([1, 2])), ("f8_e8m0fnu", np.array([1, 2], ml_dtypes.float8_e8m0fnu))):
        for relation in ("jvp", "vjp", "linearize"):
            with pytest.raises(NotApplicable):
                replay(text.format(dtype=dtype), [value], relation)
    assert replay(text.format(dtype="f32"), [np.float32([1, 2])], "jit") is None


@pytest.mark.parametrize("large", [1e6, 1e20])
def test_what_is_rounded_off_beside_a_large_operand_is_no_failure(large: float) -> None:
    text = "{ lambda ; a:f32[2] b:f32[2]. let c:f32[2] = add a b in (c,) }"
    assert replay(text, [np.float32([1, 2]), np.full(2, large, np.float32)], "transpose") is None


def test_cotangents_that_are_zero_by_definition_are_no_failure() -> None:
    text = "{ lambda ; a:f32[1,1,1] b:bool[1]. let c:f32[1,1,1] = if_taken a b d:f32[1,1,1] = add c c in (d,) }"
    assert replay(text, [np.ones((1, 1, 1), np.float32), np.bool_([False])], "transpose") is None


def test_an_interrupt_shows_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    generate = session.generate
    made: list[Any] = []

    def interrupted(*args: Any) -> Any:
        made.append(generate(*args))
        if len(made) > 2:
            raise KeyboardInterrupt
        return made[-1]

    monkeypatch.setattr(session, "generate", interrupted)
    result = run("--primitives", "sin,mul", "--programs", "9")
    assert result.exit_code == 130 and "interrupted" in result.stderr
    assert "programs    2 of" in result.stdout and "# 0 failures" in result.stdout
    assert run("--primitives", "sin,mul", "--programs", "9").exit_code == 130  # before the first program is done
