"""A function is traced once for each signature, however many times `jit` is called on it; its traces go with it."""

from __future__ import annotations

import functools
import gc
import pickle
import weakref

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.extend.programs import same_jaxpr

X = np.array([0.5, -1.0], np.float32)
DEPTH = 18


def nest(depth, twice):
    """A function of `depth` levels, each of which does with the one below what `twice` does; and its calls."""
    calls = [0] * (depth + 1)

    def bottom(x):
        calls[0] += 1
        return jnp.sin(x)

    def above(f, level):
        def g(x):
            calls[level] += 1
            return twice(f, x)

        return g

    f = bottom
    for level in range(1, depth + 1):
        f = above(f, level)
    return f, calls


TWICE = {
    "plain": lambda f, x: 0.5 * (cj.jit(f)(x) + cj.jit(f)(x)),
    "inline": lambda f, x: 0.5 * (cj.jit(f, inline=True)(x) + cj.jit(f)(x)),
    "jvp": lambda f, x: 0.5 * (cj.jvp(cj.jit(f), (x,), (x,))[0] + cj.jvp(cj.jit(f), (x,), (x,))[0]),
}


@pytest.mark.parametrize("name", ["plain", "inline", "jvp"])
def test_nested_calls_are_traced_once(name):
    f, calls = nest(DEPTH if name == "plain" else 6, TWICE[name])
    program = cj.make_jaxpr(f)(X)
    assert calls == [1] * len(calls)
    assert program.out_avals[0].shape == (2,)


def test_the_value_is_right_and_so_is_the_gradient():
    f, calls = nest(3, TWICE["plain"])  # XLA writes out every call
    np.testing.assert_allclose(cj.jit(f)(X), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(cj.jit(cj.grad(lambda x: jnp.sum(f(x))))(X), np.cos(X), rtol=1e-6)
    deep, calls = nest(8, TWICE["plain"])
    cj.make_jaxpr(cj.grad(lambda x: jnp.sum(deep(x))))(X)
    assert calls == [1] * len(calls)


def test_gradients_inside_of_gradients():
    f, calls = nest(2, lambda f, x: sum(cj.grad(lambda x: jnp.sum(cj.jit(f)(x)))(x) for _ in range(2)) * 0.5)
    np.testing.assert_allclose(cj.jit(f)(X), -np.sin(X), rtol=1e-5)  # the second derivative
    assert max(calls) <= 2


def test_each_signature_has_its_own_trace():
    seen = []

    def f(x, n=1):
        seen.append((x.shape, str(x.dtype), n))
        return x * n

    def outer(x):
        outs = [cj.jit(f)(y) for y in (x, x[:1], x.astype("int32"), x)]
        for n in (2, 3, 2):
            outs += [cj.jit(f, static_argnums=1)(x, n), cj.jit(f, static_argnames="n")(x, n=n)]
        with cj.config.override(default_dtype_bits=64):
            return [*outs, cj.jit(f)(x)]

    program = cj.make_jaxpr(outer)(X)
    assert [n for _, _, n in seen] == [1, 1, 1, 2, 2, 3, 3, 1]  # a static argument by position is not one by name
    outs = cj.ir.eval_jaxpr(program.jaxpr, program.consts, [X])
    for out, wanted in zip(
        outs, [X, X[:1], X.astype("int32"), X, *(n * X for n in (2, 2, 3, 3, 2, 2)), X], strict=True
    ):
        np.testing.assert_allclose(out, wanted)


def test_wrappers_do_not_share_with_what_they_wrap():
    def f(x):
        return x + 1

    @functools.wraps(f)
    def g(x):
        return 2 * f(x)

    kept = cj.jit(f), cj.jit(g)
    np.testing.assert_allclose(kept[0](X), X + 1)
    np.testing.assert_allclose(kept[1](X), 2 * (X + 1))
    np.testing.assert_allclose(cj.jit(cj.jit(f))(X), X + 1)


def test_methods_share_by_object():
    class Scale:
        def __init__(self, factor):
            self.factor, self.calls = factor, 0

        def __call__(self, x):
            self.calls += 1
            return x * self.factor

        def method(self, x):
            return self(x)

    a, b = Scale(2.0), Scale(3.0)
    program = cj.make_jaxpr(lambda x: [cj.jit(s.method)(x) for s in (a, b, a, b)])(X)
    assert (a.calls, b.calls) == (1, 1)
    np.testing.assert_allclose(cj.ir.eval_jaxpr(program.jaxpr, program.consts, [X]), [2 * X, 3 * X, 2 * X, 3 * X])


def test_what_closes_over_tracers_is_traced_each_time():
    def outer(y):
        def inner(x):
            return x * y

        return cj.jit(inner)(X) + cj.jit(inner)(X)

    np.testing.assert_allclose(cj.jit(outer)(X), 2 * X * X)
    np.testing.assert_allclose(cj.vmap(outer)(X), 2 * X * X[:, None])
    np.testing.assert_allclose(cj.jacobian(outer)(X), np.diag(2 * X))
    leaked = []

    def held(x):
        return x * leaked[-1]

    def use(y):
        leaked.append(y)
        return cj.jit(held)(X)

    for factor in (2.0, 3.0):
        np.testing.assert_allclose(cj.jit(use)(factor * X), factor * X * X)
        leaked.clear()


def test_effects_of_each_call_stay():
    seen = []
    f = lambda c, x: (c + jnp.sum(x), cj.jit(g)(x) + cj.jit(g)(x))
    g = lambda x: seen.append(1) or jnp.cos(x)
    carry, ys = lax.scan(f, 0.0, np.stack([X, 2 * X]))
    np.testing.assert_allclose(ys, 2 * np.cos(np.stack([X, 2 * X])), rtol=1e-6)
    np.testing.assert_allclose(carry, 3 * X.sum(), rtol=1e-6)
    assert len(seen) == 1


def test_outside_of_all_each_jit_traces_anew():
    """Calling `jit` again sees what has changed since."""
    factor = [2.0]
    f = lambda x: x * factor[0]
    g = cj.jit(f)
    np.testing.assert_allclose(g(X), 2 * X)
    factor[0] = 3.0
    np.testing.assert_allclose(cj.jit(f)(X), 3 * X)
    np.testing.assert_allclose(g(X), 2 * X)
    for wanted in (4.0, 5.0):
        factor[0] = wanted
        np.testing.assert_allclose(cj.jit(lambda x: cj.jit(f)(x) + cj.jit(f)(x))(X), 2 * wanted * X)
        np.testing.assert_allclose(cj.vmap(lambda x: cj.jit(f)(x))(X), wanted * X)


def executables():
    from corejax_xla_backend import _jaxlib

    return len(_jaxlib.client().live_executables())


def test_a_function_that_is_jitted_again_is_not_compiled_again():
    from corejax import explain

    factor, weights = [2.0], [jnp.ones(2)]

    def f(x, n=1):
        return x * factor[0] * n + weights[0]

    uses = {
        "plain": lambda: cj.jit(f)(X),
        "static": lambda: cj.jit(f, static_argnums=1)(X, 3),
        "donated": lambda: cj.jit(f, donate_argnums=0)(jnp.array(X)),
        "gradient": lambda: cj.grad(lambda x: cj.jit(f)(x).sum())(X),
        "stages": lambda: cj.jit(f).lower(X).compile()(X),
    }
    for use in uses.values():
        first = use()
        again = explain(use)()
        assert [event.kind for event in again.jit if event.kind == "compile"] == []
        np.testing.assert_array_equal(again.result, first)
    for k, kinds in ((2, ["trace", "compile"]), (3, ["trace"])):  # from the second ones on constants are arguments
        weights[0] = k * jnp.ones(2)
        again = explain(uses["plain"])()
        assert [event.kind for event in again.jit] == kinds
        np.testing.assert_allclose(again.result, 2 * X + k)
    factor[0] = 3.0
    np.testing.assert_allclose(uses["plain"](), 3 * X + 3)
    before = executables()
    cj.clear_caches()
    assert executables() < before
    uses["plain"]()
    assert vars(f) and not any(pickle.loads(pickle.dumps(vars(f))).values())


def test_programs_have_the_names_of_their_scopes():
    def f(x):
        with cj.named_scope(name):
            return x + 1

    def text(f):
        return cj.jit(f).lower(X).as_text(debug_info=True)

    name = "one"
    assert "one" in text(f)
    name = "two"
    assert "two" in text(f)
    assert "layer" in text(cj.named_call(f, name="layer"))  # functools.wraps copies what a function has


def test_programs_that_are_called_twice_at_each_level_are_compared_once():
    def f(x):
        g = jnp.sin
        for _ in range(40):
            g = twice(cj.jit(g))
        return g(x)

    def twice(g):
        return lambda x: g(g(x))

    programs = [cj.jit(f).trace(X).jaxpr for _ in range(2)]
    same = same_jaxpr(*programs, scopes=True)
    assert same  # not the programs, whose text is long


def test_traces_are_freed_with_the_function():
    def used():
        f, _ = nest(3, TWICE["plain"])
        g = cj.jit(f)
        g(X), cj.grad(lambda x: jnp.sum(cj.jit(f)(x)))(X)
        return weakref.ref(f)

    ref = used()
    gc.collect()
    assert ref() is None


def test_traces_are_freed_with_the_transformation():
    refs = []

    def outer(y):
        def inner(x):
            return x * y.shape[0]  # it closes over a tracer, and its program does not

        refs.append(weakref.ref(inner))
        return cj.jit(inner)(y)

    cj.make_jaxpr(outer)(X)
    cj.vmap(outer)(np.stack([X, X]))
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def with_rules(kind, slope):
    """`sin`, whose derivative is said to be `slope * cos`."""
    if kind == "custom_jvp":
        f = cj.custom_jvp(lambda x: jnp.sin(x))
        f.defjvp(lambda primals, tangents: (f(*primals), slope * jnp.cos(primals[0]) * tangents[0]))
    else:
        f = cj.custom_vjp(lambda x: jnp.sin(x))
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (slope * jnp.cos(x) * ct,))
    return f


def compilations(use):
    from corejax import explain

    return sum(event.kind == "compile" for event in explain(use)().jit)


USES = {
    "plain": lambda f, x: f(x).sum(),
    "vmap": lambda f, x: cj.vmap(f)(x).sum(),
    "loop": lambda f, x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0].sum(),
    "checkpoint": lambda f, x: cj.checkpoint(f)(x).sum(),
}


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("name", USES)
def test_functions_with_rules_of_their_own_are_not_compiled_again(kind, name):
    with_rule = with_rules(kind, 3.0)
    f = lambda x: USES[name](with_rule, x)
    first = cj.jit(f)(X)
    assert compilations(lambda: cj.jit(f)(X)) == 0
    np.testing.assert_array_equal(cj.jit(f)(X), first)
    cj.grad(cj.jit(f))(X)
    assert compilations(lambda: cj.grad(cj.jit(f))(X)) == 0


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_rules_made_anew_share_what_is_compiled_and_no_derivative(kind):
    slope = [3.0]
    f = lambda x: with_rules(kind, slope[0])(x).sum()
    cj.jit(f)(X)
    for wanted in (3.0, 5.0):
        slope[0] = wanted
        assert compilations(lambda: cj.jit(f)(X)) == 0
        np.testing.assert_allclose(cj.grad(cj.jit(f))(X), wanted * np.cos(X), rtol=1e-6)


def test_arguments_that_are_not_differentiated_tell_calls_apart():
    power = cj.custom_jvp(lambda n, x: x * 1, nondiff_argnums=0)
    power.defjvp(lambda n, primals, tangents: (primals[0], len(n) * tangents[0]))
    n = ["a"]
    f = lambda x: power(n[0], x).sum()
    for wanted in ("a", "abc", "abc"):
        n[0] = wanted
        cj.jit(f)(X)
        np.testing.assert_allclose(cj.grad(cj.jit(f))(X), [len(wanted)] * 2)
