"""Remembered programs that come often and take long on the host are compiled; which ones depends on what runs take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from corejax.extend import Array, Primitive, as_array, config, eval_jaxpr, remembered
from corejax.interpreters import frequent_programs
from corejax.rules import load_rules
from tests.kernel.toys import add

X = as_array(np.arange(6, dtype=np.float32))
slow_p = Primitive("frequent_test.slow", abstract_eval=lambda x: x, impl=lambda x: (time.sleep(2e-4), x + 1)[1])


class Compiler:
    """Compiles what it is asked for when a test says so; what is compiled adds a thousand."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.spent: list[float] = []
        self.runs = 0
        self.wants = True
        self.fails = False
        self.takes = 0.0

    def __call__(self, program: Any, name: str, spent: float, ready: Any) -> bool:
        self.spent.append(spent)
        if self.wants:
            self.asked.append((program, name, ready))
        return self.wants

    def finish(self) -> None:
        for program, _, ready in self.asked:
            avals = program.out_avals

            def run(arrays: list[Array], program: Any = program, avals: Any = avals) -> list[Array] | None:
                self.runs += 1
                time.sleep(self.takes)
                if self.fails:
                    return None
                outs = [np.asarray(x) + 1 for x in arrays]  # what `slow` does, without its time
                return [Array(o, aval) for o, aval in zip(outs, avals, strict=True)]

            ready(run)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    load_rules("impl")  # backends register with them
    monkeypatch.setattr(frequent_programs, "_begins", [])
    monkeypatch.setattr(frequent_programs, "SPENT_EACH", 0.0)
    monkeypatch.setattr(frequent_programs, "SPENT", 0.004)
    with config.override(compile_frequent=True):
        yield frequent_programs.compiles_frequent_programs(Compiler())


def test_a_slow_program_is_compiled_once_and_runs_there(compiler: Compiler) -> None:
    f = remembered(lambda x: slow_p.bind(x))
    for _ in range(60):
        np.testing.assert_array_equal(f(X), np.asarray(X) + 1)
    assert len(compiler.asked) == 1
    program, name, _ = compiler.asked[0]
    assert name == "<lambda>"
    np.testing.assert_array_equal(eval_jaxpr(program.jaxpr, program.consts, [X])[0], np.asarray(X) + 1)
    compiler.finish()
    for _ in range(30):
        out = f(X)
        assert out.aval is X.aval
        np.testing.assert_array_equal(out, np.asarray(X) + 1)
    assert compiler.runs == 30


def test_a_cheap_program_is_left_alone(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frequent_programs, "CHEAP", 10.0)
    f = remembered(lambda x: slow_p.bind(x))
    for _ in range(60):
        f(X)
    assert not compiler.spent


def test_the_setting_leaves_all_of_them_alone(compiler: Compiler) -> None:
    f = remembered(lambda x: slow_p.bind(x))
    with config.override(compile_frequent=False):
        for _ in range(60):
            f(X)
    assert not compiler.spent


def test_a_compiler_is_asked_again_that_does_not_want_to_yet(compiler: Compiler) -> None:
    compiler.wants = False
    f = remembered(lambda x: slow_p.bind(x))
    for _ in range(60):
        f(X)
    assert len(compiler.spent) > 2
    assert compiler.spent == sorted(compiler.spent)


def test_what_runs_slower_compiled_goes_back(compiler: Compiler) -> None:
    f = remembered(lambda x: slow_p.bind(x))
    for _ in range(60):
        f(X)
    compiler.takes = 0.002
    compiler.finish()
    for _ in range(40):
        np.testing.assert_array_equal(f(X), np.asarray(X) + 1)
    assert compiler.runs == frequent_programs.RUNS


def test_where_it_cannot_run_the_host_does(compiler: Compiler) -> None:
    f = remembered(lambda x: slow_p.bind(x))
    for _ in range(60):
        f(X)
    compiler.fails = True
    compiler.finish()
    for _ in range(5):
        np.testing.assert_array_equal(f(X), np.asarray(X) + 1)
    assert compiler.runs == 5


def test_errors_are_the_functions_own(compiler: Compiler) -> None:
    x = as_array(np.arange(6, dtype=np.float32))
    f = remembered(lambda x: slow_p.bind(add(x, x)))
    for _ in range(60):
        f(x)
    compiler.finish()
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)
