"""`named_scope` and `named_call`: names of operations in compiled programs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax, named_call, named_scope
from corejax.core.trace import state as trace_state

F = np.float32
X = np.array([0.5, -1.0, 2.0], F)


def names(fun, *args, prefix="jit(f)/"):
    """The names of operations in a lowered program, with their places: [(name, function, line from its first)]."""

    def f(*args):
        return fun(*args)

    text = corejax.jit(f).lower(*args).as_text(pretty=False, debug_info=True)
    found = re.findall(r'^#\w+ = loc\("(.*?)"\((?:"(.*?)"\(".*?":(\d+):\d+\))?\)\)$', text, re.MULTILINE)
    assert found
    assert all(name.startswith(prefix) for name, _, _ in found)
    return {name.removeprefix(prefix): function for name, function, _ in found}


def layer(x):
    with named_scope("layer"):
        with named_scope("dense"):
            y = x * 2.0
        return jnp.sin(y)


def test_scopes_nest():
    assert names(lambda x: jnp.cos(layer(x)), X) == {
        "layer/dense/mul": "layer",
        "layer/sin": "layer",
        "cos": "<lambda>",
    }


def test_decorator_and_named_call():
    @named_scope("block")
    def f(x):
        """Its docstring."""
        return jnp.sin(x)

    assert (f.__name__, f.__doc__) == ("f", "Its docstring.")
    assert set(names(lambda x: f(f(x)), X)) == {"block/sin"}
    assert set(names(named_call(jnp.sin), X)) == {"sin/sin"}
    assert set(names(named_call(lambda x: jnp.sin(x), name="mine"), X)) == {"mine/sin"}
    np.testing.assert_array_equal(np.asarray(named_call(f)(X)), np.sin(X))


def test_transformations_wrap_names():
    def loss(x):
        return jnp.sum(layer(x))

    got = set(names(corejax.grad(loss), X))
    assert {"jvp(layer)/dense/mul", "jvp(layer)/cos", "transpose(jvp(layer))/mul"} <= got
    assert "transpose(jvp(layer))/dense/mul" in got
    got = set(names(corejax.vmap(corejax.grad(loss)), X[None]))
    assert "vmap(transpose(jvp(layer)))/dense/mul" in got
    got = set(names(lambda x: corejax.jvp(layer, (x,), (x,)), X))
    assert got == {"jvp(layer)/dense/mul", "jvp(layer)/sin", "jvp(layer)/cos", "jvp(layer)/mul"}
    got = set(names(lambda x: corejax.linearize(layer, x)[1](x), X))
    assert {"jvp(layer)/cos", "jvp(layer)/mul"} <= got
    got = set(names(lambda x: corejax.vjp(layer, x)[1](x), X))
    assert {"jvp(layer)/cos", "transpose(jvp(layer))/dense/mul"} <= got
    got = set(names(corejax.linear_transpose(lambda x: named_call(lambda x: x * 2.0, name="twice")(x), X), X))
    assert got == {"transpose(twice)/mul"}


def test_scope_around_a_transformation_is_not_repeated():
    def step(x):
        with named_scope("train"):
            return corejax.grad(lambda x: jnp.sum(layer(x)))(x)

    got = set(names(step, X))
    assert "train/transpose(jvp(layer))/dense/mul" in got
    assert not any(name.count("train") > 1 for name in got)


def test_names_inside_programs():
    inner = corejax.jit(layer)

    def body(c, a):
        return layer(c) * a, None

    got = set(names(lambda x: inner(x), X))
    assert got == {"xla_call", "jit(layer)/layer/dense/mul", "jit(layer)/layer/sin"}
    got = set(names(lambda x: lax.scan(body, x, X)[0], X))
    assert {"scan", "scan/layer/dense/mul", "scan/layer/sin"} <= got
    got = set(names(lambda x: lax.cond(x[0] > 0, layer, jnp.cos, x), X))
    assert {"cond/layer/dense/mul", "cond/cos"} <= got
    got = set(names(corejax.grad(lambda x: jnp.sum(inner(x))), X))
    assert {"jvp(jit(layer))/layer/cos", "transpose(jvp(jit(layer)))/layer/mul"} <= got
    got = set(names(corejax.grad(lambda x: jnp.sum(lax.scan(body, x, X)[0])), X))
    assert {"jvp(scan)/layer/cos", "transpose(jvp(scan))/layer/mul"} <= got
    got = set(names(corejax.grad(lambda x: jnp.sum(corejax.checkpoint(layer)(x))), X))
    assert {"jvp(layer)/sin", "transpose(jvp(remat2))/layer/cos", "jvp()/reduce_sum"} <= got


def test_same_names_as_jax():
    jax = pytest.importorskip("jax")

    def program(api, numpy):
        def dense(x, w):
            with api.named_scope("dense"):
                return x @ w

        def loss(w, x):
            with api.named_scope("net"):
                return numpy.sum(dense(x, w))

        return api.jit(lambda w, x: api.grad(loss)(w, x))

    w, x = np.ones((3, 3), F), np.ones((2, 3), F)

    def products(lowered):
        text = lowered.as_text(debug_info=True)
        return {n for n in re.findall(r'loc\("(.*?)"', text) if n.endswith("/dot_general")}

    ours = products(program(corejax, jnp).lower(w, x))
    theirs = products(program(jax, jax.numpy).lower(w, x))
    last = "jit(<lambda>)/transpose(jvp(net))/dense/dot_general"
    assert last in theirs and last in ours


def test_scopes_in_jaxprs():
    closed = corejax.make_jaxpr(corejax.grad(lambda x: jnp.sum(layer(x))))(X)
    text = closed.pretty(source_info=True)
    assert re.search(r"= cos \w+  # .*\(layer\) in jvp\(layer\)$", text, re.MULTILINE)
    assert "in transpose(jvp(layer))/dense" in text
    assert "layer" not in closed.pretty()


def test_text_without_locations():
    lowered = corejax.jit(lambda x: layer(x)).lower(X)
    for pretty in (False, True):
        assert "loc" not in lowered.as_text(pretty=pretty)
        assert "layer/dense/mul" in lowered.as_text(pretty=pretty, debug_info=True)
    compiled = lowered.compile().as_text()
    assert 'op_name="jit(<lambda>)/layer/' in compiled


def test_awkward_names():
    def f(x):
        with named_scope('a "quoted"\\name\n#corejax0 = loc()'), named_scope("ünï"):
            return jnp.sin(x)

    lowered = corejax.jit(f).lower(X)
    assert "loc" not in lowered.as_text(pretty=False)
    np.testing.assert_allclose(np.asarray(lowered.compile()(X)), np.sin(X), rtol=1e-6)
    assert "ünï/sin" in lowered.as_text(pretty=False, debug_info=True)


def test_scope_ends_with_its_block():
    with pytest.raises(ValueError, match="no"), named_scope("outer"):
        corejax.jit(lambda x: (_ for _ in ()).throw(ValueError("no")))(X)
    assert trace_state.scope == ()

    def fails(x):
        with named_scope("inside"):
            raise ValueError("no")

    for transform in (corejax.grad, corejax.vmap, corejax.jit, corejax.checkpoint):
        with pytest.raises(ValueError, match="no"):
            transform(fails)(X)
    assert trace_state.scope == () and trace_state.source is None


def test_bad_scopes():
    with pytest.raises(TypeError, match="named_scope takes a string for a name, got 3 of type int"):
        named_scope(3)
    with pytest.raises(TypeError, match="named_call takes a function, got 3"):
        named_call(3)
