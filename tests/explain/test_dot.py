"""Programs as graphs and in Graphviz' language: every use is an edge, types are on it, programs inside are clusters."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax.ir import ClosedJaxpr, Jaxpr
from corejax_explain.drawing import draw_jaxpr, program_graph
from corejax_explain.program_text import parse_jaxpr
from tests.kernel import toys as toy_plugin
from tests.kernel.toys import add, call, mul, sin


@pytest.fixture(autouse=True)
def toys() -> Iterator[None]:
    with toy_plugin.installed():
        yield


def program(fun: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    return cj.make_jaxpr(fun)(*args)


def test_every_use_of_a_value_is_one_edge() -> None:
    graph = program_graph(program(lambda x, y: add(mul(x, x), y), np.ones(3, np.float32), np.ones(3, np.float32)))
    assert [(node.kind, node.title) for node in graph.nodes][:2] == [("argument", "x"), ("argument", "y")]
    assert [node.title.rpartition(".")[2] for node in graph.nodes[2:]] == ["mul", "add", "output"]
    assert [(e.source, e.target, e.value) for e in graph.edges] == [
        (0, 2, "a:f32[3]"),
        (2, 3, "c:f32[3]"),
        (1, 3, "b:f32[3]"),
        (3, 4, "d:f32[3]"),
    ]


def test_literals_are_in_the_title_and_unused_results_have_no_name() -> None:
    name = "toy.sin"
    text = f"{{ lambda ; a:f32[]. let b:f32[] = {name} 2.0:f32[]; c:f32[] = {name} a in (b, 3.0:f32[]) }}"
    graph = program_graph(parse_jaxpr(text))
    first, second = graph.nodes[1:3]
    assert (first.title, first.values) == (f"{name}(2.0)", ("b:f32[]",))
    assert (second.title, second.values) == (name, ("_:f32[]",))
    assert graph.nodes[-1].values == ("3.0",)
    assert "a" in second.note and f"{name} a" in second.note


def test_notes_have_the_users_line() -> None:
    node = program_graph(program(lambda x: sin(x), np.float32(1))).nodes[1]
    assert "test_dot.py" in node.note


def test_programs_inside_are_clusters_with_their_own_nodes() -> None:
    outer = program(call(lambda x: sin(x)), np.float32(1))
    graph = program_graph(outer)
    ((parameter, within),) = graph.nodes[1].programs
    assert [node.kind for node in within.nodes] == ["argument", "equation", "output"]
    text = draw_jaxpr(outer).dot
    assert f'label="{parameter}' in text and "subgraph cluster_n1_0_" in text
    assert 'n1_0_0 -> n1_0_1 [label="a:f32[]"]' in text
    assert text.count("{") == text.count("}")


def test_names_that_would_break_the_language_are_quoted() -> None:
    def f(x: Any) -> Any:
        return x

    f.__name__ = 'a"b\\c\nd\x1b'
    text = draw_jaxpr(program(f, np.float32(1))).dot
    assert text.startswith('digraph "a\\"b\\\\c\\nd\\\\x1b" {')


def test_programs_without_anything() -> None:
    assert program_graph(Jaxpr([], [], [], [])) == ("", [], [])
    assert draw_jaxpr(Jaxpr([], [], [], [])).dot.startswith('digraph "program" {')


def test_nodes_and_edges_agree_with_the_equations_of_a_longer_program() -> None:
    def f(x: Any) -> Any:
        for _ in range(20):
            x = add(sin(x), x)
        return x

    made = program(cj.grad(f), np.float32(1))
    text = draw_jaxpr(made).dot
    uses = sum(len({id(v) for v in eqn.invars if hasattr(v, "aval") and not hasattr(v, "val")}) for eqn in made.eqns)
    assert len(re.findall(r"^  n\d+ \[", text, re.M)) == len(made.eqns) + 2
    assert len(re.findall(r"^  n\d+ -> ", text, re.M)) == uses + 1


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_it() -> None:
    text = draw_jaxpr(program(call(lambda x: sin(x)), np.float32(1))).dot
    done = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and done.stdout.startswith("graph")
