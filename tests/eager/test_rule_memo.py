"""Rules that are run once for operands of the same types: programs are what the rules themselves record each time."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Primitive, abstract_eval_rules, defjvp, jvp_rules, vmap_rules
from corejax.extend.messages import observe, run_within, warn_user
from corejax.messages import source_info
from corejax.messages.source_info import describe_source
from corejax_eager import rule_memo

cj.plugins.load_everything()  # rules that are loaded meanwhile have the memo forget

X = np.linspace(0.1, 0.9, 4, dtype=np.float32)


@pytest.fixture(autouse=True)
def nothing_remembered():
    rule_memo._remembered.clear()
    yield
    rule_memo._remembered.clear()


def lines(jaxpr):
    return [describe_source(eqn.source_info) for eqn in jaxpr.eqns]


def each_time(monkeypatch, make):
    """What `make` gives where every rule is run each time."""
    with monkeypatch.context() as patch:
        patch.setattr(rule_memo, "replay", lambda *args: None)
        return make()


def mlp(x):
    for _ in range(3):
        x = jnp.tanh(x @ jnp.outer(x, x) * 0.5 + x)
    return jnp.sum(jax_like(x))


def jax_like(x):
    return x * 2.0 - lax.max(x, 0.25) / (1 + x * x) + jnp.where(x > 0.5, x, -x) ** 3


FUNCTIONS = {
    "mlp": mlp,
    "same twice": lambda x: jnp.sum(x * x + jnp.sin(x) * x + x * x),
    "broadcasting": lambda x: jnp.sum((x[:, None] - x[None, :]) ** 2 / jnp.exp(x)),
    "indexing": lambda x: x[0] * x[-1] + x.at[1].set(0.0)[1:3].sum() + jnp.sort(x)[2],
    "loop": lambda x: cj.lax.fori_loop(0, 3, lambda i, c: jnp.cos(c) * x[0], jnp.sum(x)),
    "branch": lambda x: lax.cond(x[0] > 0.5, lambda v: jnp.sum(v * v), lambda v: jnp.sum(jnp.sin(v)), x),
    "complex": lambda x: jnp.abs(jnp.sum(jnp.exp(1j * x) * x)),
    "checkpoint": lambda x: cj.checkpoint(lambda v: jnp.sum(jnp.sin(jnp.sin(v))))(x),
    "scopes": lambda x: scoped(x),
    "inner gradient": lambda x: jnp.sum(cj.vmap(cj.grad(lambda v: v * jnp.sin(v)))(x) * x),
}
TRANSFORMS = {
    "grad": cj.grad,
    "jvp": lambda f: lambda x: cj.jvp(f, (x,), (jnp.cos(x),)),
    "vmap": lambda f: lambda x: cj.vmap(f)(jnp.stack([x, x * 2])),
    "vmap of grad": lambda f: lambda x: cj.vmap(cj.grad(f))(jnp.stack([x, x * 2], 1).T),
    "grad of vmap": lambda f: cj.grad(lambda x: jnp.sum(cj.vmap(f)(jnp.stack([x, x])))),
    "hessian": lambda f: cj.jacfwd(cj.grad(f)),
    "grad of jit": lambda f: cj.grad(cj.jit(f)),
}


def scoped(x):
    with cj.named_scope("first"):
        y = jnp.sin(x)
    with cj.named_scope("second"):
        return jnp.sum(jnp.sin(y) * y)


@pytest.mark.sampled
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_are_those_of_the_rules(name, transform, monkeypatch):
    def make():
        f = TRANSFORMS[transform](lambda x: FUNCTIONS[name](x))  # a new one: traces of a function are remembered, too
        return cj.make_jaxpr(lambda x: (f(x), f(x + 1)))(X)

    wanted = each_time(monkeypatch, make)
    make()
    assert rule_memo._remembered
    found = make()
    assert str(found) == str(wanted)
    assert lines(found.jaxpr) == lines(wanted.jaxpr)
    f = TRANSFORMS[transform](FUNCTIONS[name])
    for got, want in zip(cj.tree.leaves(cj.jit(f)(X)), cj.tree.leaves(f(X)), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.fixture
def counted():
    """A primitive whose rules count how often they are run."""
    p = Primitive("counted", impl=np.sin, abstract_eval=lambda x: x)
    runs = {"jvp": 0, "vmap": 0}

    @jvp_rules.register(p)
    def jvp(primals, tangents):
        runs["jvp"] += 1
        return p.bind(*primals), lax.mul(lax.cos(*primals), tangents[0])

    @vmap_rules.register(p)
    def vmap(size, args, dims):
        runs["vmap"] += 1
        return p.bind(*args), dims[0]

    return p, runs


def test_a_rule_at_lines_of_its_own_is_run_each_time(counted):
    p, runs = counted  # of this file, which is the user's
    cj.make_jaxpr(lambda x: cj.jvp(lambda v: p.bind(p.bind(p.bind(v))), (x,), (x,)))(X)
    assert runs["jvp"] == 3


def test_a_librarys_rule_is_run_once_for_each_list_of_types(counted, monkeypatch):
    p, runs = counted
    user = compile("def use(p, x):\n    return p.bind(p.bind(p.bind(x)))\n", "<user>", "exec")
    space: dict = {}
    exec(user, space)
    monkeypatch.setattr(source_info, "_internal_files", {**source_info._internal_files, __file__: True})
    use = space["use"]
    for x in (X, X, X[:2]):
        cj.make_jaxpr(lambda x: cj.jvp(lambda v: use(p, v), (x,), (2 * x,)))(x)
    assert runs["jvp"] == 2
    cj.make_jaxpr(cj.vmap(lambda v: use(p, v)))(X)
    cj.make_jaxpr(cj.vmap(lambda v: use(p, v), axis_name="i"))(X)
    assert runs["vmap"] == 1 + 3
    cj.jvp(lambda v: use(p, v), (X,), (X,))  # values are known: each time
    assert runs["jvp"] == 2 + 3


def test_operands_that_are_the_same_are_told_from_others():
    def f(x, y):
        return cj.jvp(lambda x, y: (x * x, x * y, y * x), (x, y), (y, x))

    found = cj.jit(f)(2.0, 3.0)
    assert [float(v) for v in cj.tree.leaves(found)] == [4, 6, 6, 12, 13, 13]


@pytest.mark.parametrize("values", [(2.0, 3.0), (0.0, -0.0), (np.nan, 1.0), (True, 1), (1, 1.0)])
def test_scalars_are_told_from_others(values):
    def f(x):
        return [cj.jvp(lambda v, value=value: jnp.arctan2(v * value, v), (x,), (x,)) for value in values]

    for (found, moved), value in zip(cj.jit(f)(0.5), values, strict=True):
        want, wanted = cj.jvp(lambda v, value=value: jnp.arctan2(v * value, v), (0.5,), (0.5,))
        np.testing.assert_array_equal(np.signbit(found), np.signbit(want))
        np.testing.assert_allclose([found, moved], [want, wanted], rtol=1e-6, atol=1e-7)


def test_scalars_that_are_made_while_tracing_are_told_from_others():
    def mixed(h):
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            h = (h ^ (h // jnp.uint32(2**shift))) * jnp.uint32(factor)
        return h

    x = np.arange(6, dtype=np.uint32).reshape(2, 3) * 7919
    np.testing.assert_array_equal(cj.jit(cj.vmap(mixed))(x), mixed(x))
    y = X * jnp.float32(2) + jnp.float32(3)
    found = cj.jit(lambda x: cj.jvp(lambda v: v * jnp.float32(2) + jnp.float32(3) * v, (x,), (y,)))(X)
    np.testing.assert_allclose(found, [X * 5, y * 5], rtol=1e-6)


def test_a_scalar_that_is_deleted_later():
    two = jnp.float32(2)
    assert cj.jit(cj.grad(lambda x: x * two))(1.0) == 2
    two.delete()
    again = jnp.float32(2)
    assert cj.jit(cj.grad(lambda x: x * again * 1))(1.0) == 2


@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_parameters_that_are_equal_and_not_the_same(zeros):
    p = Primitive("by_parameter", abstract_eval=lambda x, *, by: x, impl=lambda x, *, by: x / np.float32(by))
    jvp_rules.register(p, lambda primals, tangents, *, by: (p.bind(*primals, by=by), p.bind(*tangents, by=by)))
    for zero in zeros:
        closed = cj.make_jaxpr(lambda x, zero=zero: cj.jvp(lambda v: p.bind(v, by=zero), (x,), (x,)))(X)
        assert [str(eqn.params["by"]) for eqn in closed.jaxpr.eqns] == [str(zero)] * 2


def test_settings_and_rules_that_change():
    def tangent(x):
        return str(cj.make_jaxpr(lambda v: cj.jvp(lambda v: lax.mul(v, v).mean(), (v,), (v,)))(x))

    whole = np.arange(3, dtype=np.int16).astype(np.float16)
    before = tangent(whole)
    with cj.enable_x64(True), cj.numpy_dtype_promotion("strict"):
        assert tangent(whole) == before
    assert tangent(whole) == before

    p = Primitive("growing", abstract_eval=lambda x: x, impl=np.negative)
    defjvp(p, lambda t, x: lax.mul(p.bind(x), t))
    assert cj.make_jaxpr(lambda x: cj.jvp(p.bind, (x,), (x,)))(X).out_avals[1].shape == (4,)
    vmap_rules.register(p, lambda size, args, dims: (p.bind(*args), dims[0]))
    jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), lax.neg(tangents[0])), override=True)
    assert "neg" in str(cj.make_jaxpr(lambda x: cj.jvp(p.bind, (x,), (x,)))(X))
    abstract_eval_rules.register(p, lambda x: x.update(weak_type=False), override=True)
    assert not rule_memo._remembered


def test_an_error_is_raised_each_time():
    p = Primitive("wrong", abstract_eval=lambda x: x, impl=np.sin)
    jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), lax.reduce_sum(tangents[0], (0,))))
    for _ in range(3):
        with pytest.raises(TypeError, match="primitive 'wrong': its JVP rule"):
            cj.make_jaxpr(lambda x: cj.jvp(p.bind, (x,), (x,)))(X)


def test_a_rule_that_warns_does_so_each_time(counted, monkeypatch):
    p, _ = counted
    monkeypatch.setattr(source_info, "_internal_files", {**source_info._internal_files, __file__: True})

    def jvp(primals, tangents):
        warn_user("not accurate there", UserWarning)
        return p.bind(*primals), tangents[0]

    jvp_rules.register(p, jvp, override=True)
    for _ in range(2):
        with pytest.warns(UserWarning, match="not accurate"):
            cj.make_jaxpr(lambda x: cj.jvp(p.bind, (x,), (x,)))(X)


def test_explain_tells_of_each_rule():
    def f(x):
        return cj.jvp(lambda v: jnp.sin(jnp.sin(v)), (x,), (x,))

    cj.make_jaxpr(f)(X)
    seen = []
    watcher = observe.watching(lambda step, begins: seen.append(step) if step.kind == "jvp" and begins else None)
    run_within((watcher,), cj.make_jaxpr(f), X)
    assert len(seen) == 2


# -- what a rule may depend on besides its operands ----------------------------------------------------------------


@pytest.fixture
def library(monkeypatch):
    """Has this file count as a library's."""
    from corejax.messages import source_info

    monkeypatch.setattr(source_info, "_internal_files", {**source_info._internal_files, __file__: True})


def marked(make_tangent, **rules):
    """A primitive, its own value, whose JVP rule gives what `make_tangent` does."""
    p = Primitive("marked", abstract_eval=lambda x, **_: x, impl=lambda x, **_: x)

    @jvp_rules.register(p)
    def jvp(primals, tangents, **params):
        return p.bind(*primals, **params), make_tangent(*tangents, **params)

    vmap_rules.register(p, lambda size, args, dims, **params: (make_tangent(*args, **params), dims[0]))
    return p


def tangent_of(p, x, **params):
    return cj.jvp(lambda v: p.bind(v, **params), (x,), (x,))[1]


def test_parameters_that_are_equal_in_tuples(library, monkeypatch):
    p = marked(lambda t, by: lax.mul(t, np.float32(2 if type(by[0]) is bool else 3)))
    tuples = [(1,), (True,), (np.int64(1),), (False,), (0,)]

    def texts():
        return [str(cj.make_jaxpr(lambda x, by=by: tangent_of(p, x, by=by))(X)) for by in tuples]

    assert texts() == texts() == each_time(monkeypatch, texts)
    assert rule_memo._remembered


def test_parameters_of_subclasses(library):
    class Word(str):
        factor = 1.0

    p = marked(lambda t, by: lax.mul(t, np.float32(by.factor)))
    first, second = Word("a"), Word("a")
    second.factor = 5.0
    for word in (first, second):
        text = str(cj.make_jaxpr(lambda x, word=word: tangent_of(p, x, by=word))(X))
        assert f"mul b {word.factor}" in text or f" {word.factor}:f32[]" in text


@pytest.mark.parametrize("of", ["jvp", "vmap"])
def test_sizes_of_named_axes(of, library):
    p = marked(lambda t: lax.mul(t, np.float32(lax.axis_size("i"))))
    inner = (lambda x: tangent_of(p, x)) if of == "jvp" else cj.vmap(p.bind)
    for n in (3, 5):
        found = cj.vmap(cj.jit(lambda x: inner(x)), axis_name="i")(np.ones((n, 2), np.float32))
        np.testing.assert_array_equal(found, np.full((n, 2), n))
    with pytest.raises(NameError, match="'i'"):
        cj.make_jaxpr(lambda x: inner(x))(X)


@pytest.mark.parametrize("of", ["decomposition", "rule"])
def test_rules_that_run_rules_of_others(of, library):
    inner = marked(lambda t: lax.neg(t))
    if of == "decomposition":
        outer = Primitive("around", decomposition=lambda x: inner.bind(x))
    else:
        outer = marked(lambda t: tangent_of(inner, t))

    def texts():
        return [str(cj.make_jaxpr(f)(X)) for f in (lambda x: tangent_of(outer, x), lambda x: cj.vmap(outer.bind)(x))]

    assert all("neg" in text for text in texts() + texts())
    jvp_rules.register(inner, lambda primals, tangents: (inner.bind(*primals), lax.cos(*tangents)), override=True)
    vmap_rules.register(inner, lambda size, args, dims: (lax.cos(*args), dims[0]), override=True)
    assert all("cos" in text and "neg" not in text for text in texts())


def test_what_is_not_remembered_takes_no_memory(library):
    p = marked(lambda t, by: lax.neg(t))
    cj.make_jaxpr(lambda x: [tangent_of(p, x, by=float(i)) for i in range(10)])(X)
    cj.make_jaxpr(lambda x: [tangent_of(p, x, by=lambda i=i: i) for i in range(10)])(X)
    assert not rule_memo._remembered


def test_a_setting_that_changes_while_a_rule_runs(library):
    def tangent(t):
        cj.config.update("default_dtype_bits", 64)
        return lax.neg(t)

    p = marked(tangent)
    with cj.enable_x64(False):
        cj.make_jaxpr(lambda x: tangent_of(p, x))(X)
        assert not rule_memo._remembered
