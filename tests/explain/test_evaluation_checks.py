"""Checks of plugins: told of what runs and of what is staged while their setting is on, and of nothing else."""

import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend.devices import EvaluationCheck, evaluation_checks
from corejax.extend.messages import observe


class Recorder:
    """A check that refuses one primitive, by name."""

    def __init__(self, refused=None):
        self.refused = refused
        self.calls = []
        self.programs = []

    def call(self, primitive, args, params):
        if primitive.name == self.refused:
            raise ValueError(f"no {primitive.name}")
        entry = [primitive.name, len(args), "running"]
        self.calls.append(entry)

        def finish(outs):
            entry[2] = None if outs is None else [x.shape for x in outs]

        return finish

    def program(self, jaxpr):
        self.programs.append([eqn.primitive.name for eqn in jaxpr.eqns])


@pytest.fixture
def recorder():
    found = Recorder()
    evaluation_checks.register("check_tracer_leaks", EvaluationCheck(found.call, found.program))
    try:
        yield found
    finally:
        evaluation_checks.remove("check_tracer_leaks")
    assert not observe.checking
    assert not observe.watched


def test_told_while_the_setting_is_on(recorder):
    x = jnp.arange(3.0)
    jnp.sin(x)
    assert recorder.calls == []
    assert not observe.checking
    with corejax.checking_leaks():
        assert observe.checking
        jnp.sin(x)
        corejax.make_jaxpr(jnp.cos)(x)
        assert [row.shape for row in jnp.ones((2, 3))] == [(3,), (3,)]
    jnp.sin(x)
    names = [name for name, *_ in recorder.calls]
    assert recorder.calls[0] == ["sin", 1, [(3,)]]
    assert names.count("sin") == 1
    assert "slice" in names or "dynamic_slice" in names  # what iteration takes are parts, by primitives
    assert recorder.programs == [["cos"]]


def test_the_call_of_a_compiled_program_is_one(recorder):
    f = corejax.jit(lambda x: jnp.sin(x) + 1)
    f(jnp.ones(2))
    with corejax.checking_leaks():
        for _ in range(2):
            f(jnp.ones(2))
    assert [name for name, *_ in recorder.calls if name in ("xla_call", "sin", "add")] == ["xla_call"] * 2


def test_transformations_come_down_to_it(recorder):
    with corejax.checking_leaks():
        corejax.grad(lambda x: jnp.sum(corejax.vmap(jnp.sin)(x)))(jnp.ones(2))
    assert ["sin", 1, [(2,)]] in recorder.calls


def test_errors(recorder):
    x = jnp.ones(2)
    with corejax.checking_leaks():
        recorder.refused = "sin"
        with pytest.raises(ValueError, match="no sin"):
            jnp.sin(x)
        recorder.refused = None
        with pytest.raises(TypeError):
            corejax.lax.add_p.bind(x, jnp.ones(3))
        assert recorder.calls[-1] == ["add", 2, None]
        jnp.cos(x)
    assert recorder.calls[-1] == ["cos", 1, [(2,)]]
