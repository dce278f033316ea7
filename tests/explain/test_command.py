"""`corejax jaxpr`: what it prints of a function, in every form."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import corejax as cj
import corejax.numpy as jnp
from corejax.cli import main

MODEL = """
import corejax
import corejax.numpy as jnp
from corejax import lax

def loss(params, x, n=1, act="tanh"):
    for _ in range(n):
        x = getattr(jnp, act)(x @ params["w"])
    return jnp.sum(x**2)

def loop(x):
    return lax.fori_loop(0, 3, lambda i, x: jnp.sin(x), x)

def bad(x):
    return x @ jnp.ones(3)
"""
TYPES = '{"w": f32[3,3]}, f32[2,3]'


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "jaxpr_model.py"
    path.write_text(MODEL)
    return path


def run(model: Path, function: str, *arguments: str) -> Result:
    result = CliRunner().invoke(main, ["jaxpr", f"{model}:{function}", *arguments], prog_name="corejax")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_text_is_the_one_of_make_jaxpr(model: Path) -> None:
    def loss(params, x):  # type: ignore[no-untyped-def]
        return jnp.sum(jnp.tanh(x @ params["w"]) ** 2)

    expected = cj.make_jaxpr(loss)({"w": jnp.ones((3, 3))}, jnp.ones((2, 3)))
    assert run(model, "loss", "--args", TYPES).stdout == f"{expected}\n"


def test_static_arguments_and_transformations(model: Path) -> None:
    found = run(model, "loss", "--args", f"{TYPES}, 2, 'sin'", "--transform", "grad").stdout
    assert found.count(" sin ") == found.count(" cos ") == 2 and "tanh" not in found
    assert run(model, "loss", "--args", TYPES, "act='cos'", "n=3").stdout.count(" cos ") == 3
    batched = run(model, "loss", '{"w": f32[5,3,3]}, f32[5,2,3], 1', "--transform", "grad", "--transform", "vmap")
    assert "in (" in batched.stdout and ":f32[5,3,3] = " in batched.stdout


def test_lines_of_the_source(model: Path) -> None:
    assert "jaxpr_model.py:8:" in run(model, "loss", TYPES, "--source").stdout


def test_counts_are_of_all_programs(model: Path) -> None:
    lines = run(model, "loop", "f32[3]", "--count").stdout.splitlines()
    assert lines[0].startswith(f"{model}:loop: ")
    rows = {line.split()[0]: line.split()[1:] for line in lines[4:]}
    assert rows["sin"] == ["1", "1", "lax_basic"] and rows["scan"] == ["1", "control_flow"]
    total = int(lines[0].rpartition(": ")[2].split()[0])
    assert sum(int(row[0]) for row in rows.values()) == total


def test_json(model: Path) -> None:
    found = json.loads(run(model, "loss", TYPES, "--json").stdout)
    assert (found["format"], found["arguments"], found["results"]) == (
        "corejax-jaxpr",
        ["f32[3,3]", "f32[2,3]"],
        ["f32[]"],
    )
    assert found["primitives"] == {"dot_general": 1, "integer_pow": 1, "reduce_sum": 1, "tanh": 1}
    assert found["text"] == run(model, "loss", TYPES).stdout.rstrip("\n")


def test_pictures(model: Path) -> None:
    assert run(model, "loop", "f32[3]", "--dot").stdout.startswith('digraph "loop" {\n')
    svg = run(model, "loop", "f32[3]", "--svg").stdout
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    html = run(model, "loop", "f32[3]", "--html").stdout
    assert html.startswith("<!DOCTYPE html>") and "<svg" in html and "<details>" in html


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bad", "f32[2]"], 1, "failed while it was traced at"),
        (["loss", "f32[2"], 2, "expected a type such as"),
        (["lose", "f32[2]"], 2, "did you mean 'loss'?"),
        (["loss"], 2, "give their types after --args"),
    ],
)
def test_mistakes(arguments: list[str], code: int, message: str, model: Path) -> None:
    result = run(model, *arguments)
    assert (result.exit_code, result.stdout) == (code, "") and message in result.stderr
    assert "Traceback" not in result.stderr and "<corejax>" not in result.stderr


def test_help_has_an_example() -> None:
    result = CliRunner().invoke(main, ["jaxpr", "--help"])
    assert result.exit_code == 0 and "corejax jaxpr corejax.numpy:dot" in result.stdout
