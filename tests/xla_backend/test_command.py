"""`corejax hlo`: what it prints of a function before and after compilation."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import corejax as cj
from corejax.cli import main
from corejax.extend.types import ShapeDtypeStruct

MODEL = """
from functools import partial

import corejax
import corejax.numpy as jnp

def f(x, n=1):
    for _ in range(n):
        x = jnp.sin(x)
    return x

step = corejax.jit(f, static_argnames="n")

def bad(x):
    return x @ jnp.ones(3)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "hlo_model.py"
    path.write_text(MODEL)
    return path


def run(model: Path, function: str, *arguments: str) -> Result:
    result = CliRunner().invoke(main, ["hlo", f"{model}:{function}", *arguments], prog_name="corejax")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_stablehlo_is_the_one_of_lower(model: Path) -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return cj.numpy.sin(x)

    expected = cj.jit(f).lower(ShapeDtypeStruct((3,), "float32")).as_text().rstrip("\n")
    assert run(model, "f", "--args", "f32[3]").stdout.rstrip("\n") == expected


def test_jitted_functions_keep_their_options_and_static_arguments(model: Path) -> None:
    for function in ("f", "step"):
        assert run(model, function, "f32[3], n=2").stdout.count("stablehlo.sine") == 2
    assert run(model, "f", "f32[3], 2").stdout.count("stablehlo.sine") == 2
    assert run(model, "f", "f32[3], 2", "--transform", "vmap").stdout.count("stablehlo.sine") == 2


def test_dialects_platforms_and_locations(model: Path) -> None:
    assert run(model, "f", "f32[3]", "--dialect", "hlo").stdout.startswith("HloModule")
    assert "hlo_model.py" in run(model, "f", "f32[3]", "--debug-info").stdout
    assert "stablehlo.sine" in run(model, "f", "f32[3]", "--platform", "cuda").stdout


def test_what_xla_runs_and_what_it_costs(model: Path) -> None:
    assert "is_scheduled=true" in run(model, "f", "f32[3]", "--optimized").stdout
    costs = dict(line.rsplit(maxsplit=1) for line in run(model, "f", "f32[1000]", "--cost").stdout.splitlines())
    assert costs["transcendentals"].strip() == "1,000"
    memory = dict(line.split(maxsplit=1) for line in run(model, "f", "f32[1000]", "--memory").stdout.splitlines())
    assert memory["argument"].startswith("4000 bytes") and memory["output"].startswith("4000 bytes")
    both = run(model, "f", "f32[1000]", "--cost", "--memory", "--optimized").stdout
    assert "transcendentals" in both and "argument" in both


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bad", "f32[2]"], 1, "hlo_model.py:15 (bad): TypeError: matmul"),
        (["f", "f32[2"], 2, "expected a type such as"),
        (["f", "f32[2]", "--platform", "abacus"], 2, "abacus"),
        (["f", "f32[2]", "--optimized", "--debug-info"], 2, "leave out --optimized"),
        (["g", "f32[2]"], 2, "has no 'g'"),
    ],
)
def test_mistakes(arguments: list[str], code: int, message: str, model: Path) -> None:
    result = run(model, *arguments)
    assert (result.exit_code, result.stdout) == (code, "") and message in result.stderr
    assert "Traceback" not in result.stderr and "<corejax>" not in result.stderr


def test_help_has_an_example() -> None:
    result = CliRunner().invoke(main, ["hlo", "--help"])
    assert result.exit_code == 0 and "corejax hlo corejax.numpy:dot" in result.stdout
