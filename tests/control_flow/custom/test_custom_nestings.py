"""Functions with rules of their own under every nesting of transformations: against plain functions, and jax."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from tests.control_flow.custom.custom_programs import INNER, PROGRAMS, Api, Plain
from tests.control_flow.nestings import BATCH, BATCHED, JITTED, TRANSFORMS
from tests.control_flow.test_nestings import check_equal

pytestmark = pytest.mark.sampled
OURS = Api(corejax, jnp, lax)
FORWARD = {"jvp", "linearize", "jvp_jvp", "jit_jvp", "jvp_vmap"}  # what custom_vjp has no rule for
programs = pytest.mark.parametrize("program", [pytest.param(p, id="-".join(p)) for p in PROGRAMS])


def function(program):
    return PROGRAMS[program](OURS)


def plainly(program, name, x):
    return TRANSFORMS[name](corejax, PROGRAMS[program](OURS._replace(api=Plain(corejax))))(x)


def reverse_only(program, name):
    return "custom_vjp" in program and name in FORWARD


def check(program, name, transform, same, xs):
    transformed = transform(corejax, function(program))
    if reverse_only(program, name):
        with pytest.raises(TypeError, match=r"custom_vjp function: .* has a rule for reverse mode only"):
            transformed(xs[0])
        return
    for x in xs:
        check_equal(transformed(x), plainly(program, same, x))


def names(table, *fast):
    return pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in fast)) for n in table])


@programs
@names(TRANSFORMS, "value", "jvp", "linearize", "hvp", "grad_grad")
def test_eager(program, name):
    check(program, name, TRANSFORMS[name], name, BATCH[:2])


@programs
@names(JITTED, "jit_grad_grad")
def test_jitted(program, name):
    transform, same = JITTED[name]
    check(program, name, transform, same, BATCH[:2])


@programs
@names(BATCHED, "vmap_hvp", "grad_vmap", "jvp_vmap")
def test_batched(program, name):
    transform, same = BATCHED[name]
    transformed = transform(corejax, function(program))
    if reverse_only(program, name):
        with pytest.raises(TypeError, match="has a rule for reverse mode only"):
            transformed(BATCH)
        return
    got = transformed(BATCH)
    for i, x in enumerate(BATCH):
        check_equal(corejax.tree_util.tree_map(lambda a, i=i: a[i], got), plainly(program, same, x))


@pytest.mark.slow
@programs
@names((*TRANSFORMS, *JITTED))
def test_against_jax(program, name):
    jax = pytest.importorskip("jax")
    if reverse_only(program, name):
        pytest.skip("jax has no forward mode there either")
    transform = TRANSFORMS[name] if name in TRANSFORMS else JITTED[name][0]
    theirs = PROGRAMS[program](Api(jax, jax.numpy, jax.lax))
    want = jax.jit(transform(jax, theirs))(BATCH[0])
    got = transform(corejax, function(program))(BATCH[0])
    check_equal(got, [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(want)])


def test_five_nested_gradients():
    f = corejax.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda p, t: (f(*p), jnp.cos(p[0]) * t[0]))
    g = corejax.custom_vjp(lambda x: jnp.sin(x))
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (jnp.cos(x) * ct,))
    for nested in (f, g, corejax.jit(f), corejax.jit(g)):
        for _ in range(5):
            nested = corejax.grad(nested)
        np.testing.assert_allclose(nested(np.float32(0.3)), np.cos(0.3), rtol=1e-5)


@pytest.mark.skipif(not hasattr(lax, "while_loop"), reason="there is no while_loop")
@pytest.mark.parametrize("kind", INNER)
def test_in_a_while_loop(kind):
    f = INNER[kind](OURS)

    def program(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], x)), (0, x))[1]

    def plain(x):
        y = x
        for _ in range(3):
            y = jnp.sin(y) * x
        return y

    for jit in (lambda g: g, corejax.jit):
        check_equal(jit(program)(BATCH[0]), plain(BATCH[0]))
        check_equal(jit(corejax.vmap(program))(BATCH), plain(BATCH))
        pushed = jit(lambda x: corejax.jvp(program, (x,), (x,)))
        if kind == "custom_jvp":
            check_equal(pushed(BATCH[0]), corejax.jvp(plain, (BATCH[0],), (BATCH[0],)))
            check_equal(jit(corejax.jacfwd(program))(BATCH[0]), corejax.jacfwd(plain)(BATCH[0]))
        else:
            with pytest.raises(TypeError, match="has a rule for reverse mode only"):
                pushed(BATCH[0])


def test_plain_numpy_and_numbers_are_arrays_inside():
    """Called by itself a function with a rule computes as it does when compiled, whatever it is called with."""
    seen = []

    def half(n):
        seen.append(type(n))
        return n / 2

    rules = {
        "custom_jvp": lambda f: (g := corejax.custom_jvp(f), g.defjvp(lambda p, t: (f(*p), t[0])))[0],
        "custom_vjp": lambda f: (g := corejax.custom_vjp(f), g.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,)))[0],
        "custom_vmap": lambda f: (
            g := corejax.custom_batching.custom_vmap(f),
            g.def_vmap(lambda n, b, x: (f(x), True)),
        )[0],
    }
    for make in rules.values():
        g, h = make(half), make(lambda x: x)
        for n in (np.arange(3, dtype=np.int32), np.int8(3), 3, True):
            out, compiled = g(n), corejax.jit(g)(n)
            assert isinstance(out, corejax.Array) and out.aval is compiled.aval
            assert isinstance(h(n), corejax.Array) and h(n).aval is corejax.jit(h)(n).aval
            both = lambda x, n=n, g=g: (x, g(n))
            assert corejax.grad(both, has_aux=True)(1.0)[1].aval is compiled.aval
    assert not any(issubclass(kind, np.ndarray | np.generic | int) for kind in seen)
    first = corejax.custom_gradient(lambda x: (x, lambda ct: ct))(np.ones(3, np.float32))
    assert isinstance(first, corejax.Array)


def test_rules_of_the_function_inside_are_given_through_the_one_outside():
    @corejax.custom_vjp
    @corejax.custom_batching.custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    f.def_vmap(lambda size, batched, x, y: (jnp.sin(x) * y + 1, True))
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: (2 * ct, 3 * ct))
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(corejax.vmap(f)(x, x), np.sin(x) * x + 1, rtol=1e-6)
    assert corejax.grad(f, argnums=(0, 1))(1.0, 2.0) == (2.0, 3.0)
    assert not hasattr(corejax.custom_jvp(jnp.sin), "def_vmap")


@pytest.mark.parametrize("wrapper", [corejax.custom_jvp, corejax.custom_vjp])
def test_arguments_that_a_partial_has_bound_by_keyword(wrapper):
    def scaled(x, y, scale):
        return x + y * scale

    f = wrapper(functools.partial(scaled, scale=0.5))
    if wrapper is corejax.custom_jvp:
        f.defjvp(lambda primals, tangents: (f(*primals), 7 * tangents[0]))
    else:
        f.defvjp(lambda x, y: (f(x, y), None), lambda _, ct: (7 * ct, None))
    assert corejax.value_and_grad(f)(1.0, 2.0) == (2.0, 7.0)
    with pytest.raises(TypeError, match="keyword-only"):
        f(1.0, 2.0, scale=1.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_rules_return_numbers_of_python(dtype):
    backward = corejax.custom_vjp(lambda x, y: x * y)
    backward.defvjp(lambda x, y: (x * y, None), lambda _, ct: (1, 2.5))
    forward = corejax.custom_jvp(lambda x: x * 2)
    forward.defjvp(lambda primals, _: (primals[0] * 2, 3))
    x = jnp.ones((), dtype)
    found = [*corejax.vjp(backward, x, x)[1](x), corejax.jvp(forward, (x,), (x,))[1]]
    assert [complex(t) for t in found] == [1, 2.5, 3]
    assert [t.dtype for t in found] == [x.dtype] * 3
    with pytest.raises(TypeError, match="it must be"):
        corejax.vjp(corejax.custom_gradient(lambda x: (x, lambda ct: jnp.int32(1))), x)[1](x)
