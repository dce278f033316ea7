"""`checkpoint`: jaxprs, what is kept and what is computed again, every nesting, memory, bad input."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkpoint_policies as policies
from corejax import lax
from corejax.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals
from corejax.extend.programs import check_jaxpr, subjaxprs
from corejax.tree_util import tree_leaves, tree_map
from tests.control_flow.nestings import BATCH, BATCHED, JITTED, PROGRAMS, TRANSFORMS
from tests.signatures import difference

F = np.float32
X = np.array([0.5, -1.0, 2.0], F)


def jaxpr(fun, *args):
    closed = corejax.make_jaxpr(fun)(*args)
    check_jaxpr(closed)
    return closed


def equations(program, name):
    """The equations of a primitive in a program and in those inside it."""
    for eqn in program.eqns:
        if eqn.primitive.name == name:
            yield eqn
        for sub in subjaxprs(eqn.params):
            yield from equations(sub, name)


def count(program, name):
    return len(list(equations(program, name)))


def check(got, want, rtol=1e-5):
    assert corejax.tree_util.tree_structure(got) == corejax.tree_util.tree_structure(want)
    for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=2e-6)


def sines(x, y):
    return jnp.sin(checkpoint_name(jnp.sin(jnp.sin(x) * y), "inner"))


def backward(fun, *args):
    """The equation of the backward pass in the jaxpr of a gradient."""
    (eqn,) = (e for e in equations(jaxpr(corejax.grad(fun), *args), "remat2") if e.params["differentiated"])
    return eqn


# -- jaxprs --------------------------------------------------------------------------------------------------


def test_jaxpr():
    text = """\
    { lambda ; a:f32[]. let
        b:f32[] = remat2[
          differentiated=False
          jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) }
          policy=None
          prevent_cse=True
        ] a
      in (b,) }"""
    got = str(jaxpr(corejax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), F(1)))
    assert got.split() == dedent(text).replace(";", "").replace("lambda  a", "lambda ; a").split()


def test_gradient_jaxpr():
    got = str(jaxpr(corejax.grad(corejax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))), F(1)))
    assert got == dedent("""\
    { lambda ; a:f32[]. let
        b:f32[] = sin a
        _:f32[] = sin b
        c:f32[] = remat2[
          differentiated=True
          jaxpr={ lambda ; a:f32[] b:f32[]. let
              c:f32[] = sin a
              d:f32[] = cos a
              e:f32[] = cos c
              f:f32[] = mul e b
              g:f32[] = mul d f
            in (g,) }
          policy=None
          prevent_cse=True
        ] a 1.0:f32[]
      in (c,) }""")


@pytest.mark.parametrize("policy", [None, policies.dots_saveable, policies.save_only_these_names("b", "a")])
def test_text_round_trip(policy):
    from corejax.ir import parse_jaxpr

    closed = jaxpr(corejax.grad(corejax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy)), F(1))
    assert str(parse_jaxpr(str(closed))) == str(closed)


def test_same_equations_as_jax():
    jax = pytest.importorskip("jax")

    def layers(api, numpy, remat):
        def loss(w, x):
            for _ in range(3):
                x = remat(lambda w, x: numpy.tanh(x @ w))(w, x)
            return numpy.sum(x)

        return api.make_jaxpr(api.grad(loss))(np.ones((3, 3), F), np.ones((2, 3), F))

    def counts(program):
        found = {}
        for eqn in program.eqns:
            found[eqn.primitive.name] = found.get(eqn.primitive.name, 0) + 1
            inner = [v for v in eqn.params.values() if hasattr(v, "eqns")]
            for sub in inner:
                for name, n in counts(sub).items():
                    found[name] = found.get(name, 0) + n
        return found

    ours = counts(layers(corejax, jnp, corejax.checkpoint))
    theirs = counts(layers(jax, jax.numpy, jax.checkpoint))
    for name in ("remat2", "dot_general", "tanh"):
        assert ours[name] == theirs[name], name


# -- what is kept --------------------------------------------------------------------------------------------


def kept(fun, *args):
    return [(r.aval.str_short(), r.source.split(" from /")[0]) for r in saved_residuals(fun, *args)]


ARGUMENTS = [("f32[3]", "from the argument x"), ("f32[3]", "from the argument y")]


def test_only_arguments_are_kept():
    assert kept(corejax.checkpoint(sines), X, X) == ARGUMENTS
    assert len(kept(sines, X, X)) > 3


def test_names_are_kept():
    f = corejax.checkpoint(sines, policy=policies.save_only_these_names("inner"))
    assert kept(lambda x, y: f(x, y) * 2.0, X, X) == [*ARGUMENTS, ("f32[3]", "named 'inner'")]
    g = corejax.checkpoint(sines, policy=policies.save_only_these_names("other"))
    assert kept(lambda x, y: g(x, y), X, X) == ARGUMENTS


@pytest.mark.parametrize(
    ("policy", "sines_again"),
    [
        (None, 2),
        (policies.nothing_saveable, 2),
        (policies.everything_saveable, 0),
        (policies.save_only_these_names("inner"), 1),
        (policies.save_any_names_but_these("inner"), 2),
        (policies.save_anything_except_these_names("inner"), 0),
        (policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("inner")), 1),
        (lambda primitive, *_, **__: primitive.name == "sin", 0),
    ],
    ids=["none", "nothing", "everything", "only", "any-but", "anything-except", "both", "function"],
)
def test_what_is_computed_again(policy, sines_again):
    f = corejax.checkpoint(sines, policy=policy)
    eqn = backward(lambda x, y: jnp.sum(f(x, y)), X, X)
    assert count(eqn.params["jaxpr"], "sin") == sines_again
    check(corejax.grad(lambda x: jnp.sum(f(x, X)))(X), corejax.grad(lambda x: jnp.sum(sines(x, X)))(X))


def test_products_are_kept():
    def two(w, x):
        return jnp.sin(jnp.sin(x @ w) @ w)

    def batched(w, x):
        return jnp.sin(jnp.einsum("bi,bij->bj", x, w))

    w, x = np.eye(3, dtype=F), np.ones((2, 3), F)
    for policy, products in (
        (policies.dots_saveable, 2 + 2),
        (policies.checkpoint_dots, 2 + 2),
        (policies.dots_with_no_batch_dims_saveable, 2 + 2),
        (None, 2 + 4),
    ):
        f = corejax.checkpoint(two, policy=policy)
        program = jaxpr(corejax.grad(lambda w, x, f=f: jnp.sum(f(w, x))), w, x)
        assert count(program, "dot_general") - 1 == products, policy  # and one more product for the inner cotangent
    ws = np.ones((2, 3, 3), F)
    for policy, again in ((policies.dots_saveable, 0), (policies.dots_with_no_batch_dims_saveable, 1)):
        f = corejax.checkpoint(batched, policy=policy)
        eqn = backward(lambda w, x, f=f: jnp.sum(f(w, x)), ws, x)
        assert count(eqn.params["jaxpr"], "dot_general") == 1 + again, policy


@pytest.mark.parametrize("where", ["jit", "scan", "cond"])
def test_policies_reach_inside(where):
    """A name inside a program inside the function is kept."""

    def inner(x):
        return jnp.sin(checkpoint_name(jnp.log(2.0 + jnp.sin(x)), "inner"))

    wrapped = {
        "jit": corejax.jit(inner),
        "scan": lambda x: lax.scan(lambda c, a: (inner(c * a), None), x, np.ones((4, 3), F))[0],
        "cond": lambda x: lax.cond(x[0] > 0, inner, lambda x: checkpoint_name(jnp.cos(x), "inner") * x, x),
    }[where]
    policy = policies.save_only_these_names("inner")
    f = corejax.checkpoint(lambda x: jnp.sum(wrapped(x)), policy=policy)
    program = jaxpr(corejax.grad(f), X)
    (eqn,) = (e for e in program.eqns if e.primitive.name == "remat2" and e.params["differentiated"])
    assert count(eqn.params["jaxpr"], "log") == 0
    assert len(eqn.invars) == 3 + (
        where == "scan"
    )  # the argument (and what is scanned), what has the name, the cotangent
    unnamed = corejax.checkpoint(lambda x: jnp.sum(wrapped(x)))
    (eqn,) = (e for e in jaxpr(corejax.grad(unnamed), X).eqns if e.primitive.name == "remat2")
    assert count(eqn.params["jaxpr"], "log") > 0
    for x in (X, -X):
        want = corejax.grad(lambda x: jnp.sum(wrapped(x)))(x)
        check(corejax.grad(f)(x), want)
        check(corejax.jit(corejax.grad(f))(x), want)
        check(corejax.grad(unnamed)(x), want)


def test_unused_outputs_and_arguments_go():
    f = corejax.checkpoint(lambda x, y: (jnp.sin(x), jnp.cos(y)))
    program = jaxpr(lambda x, y: corejax.jit(lambda x, y: f(x, y)[0])(x, y), X, X)
    from corejax.extend.programs import dce

    inner = next(equations(program, "xla_call")).params["call_jaxpr"].jaxpr
    (eqn,) = dce(inner).eqns
    assert (len(eqn.invars), len(eqn.outvars), count(eqn.params["jaxpr"], "cos")) == (1, 1, 0)


def test_one_run_forward_and_one_again():
    """Callers of an effectful or costly function see it once more, not more often."""
    eqn = backward(corejax.checkpoint(lambda x: jnp.sum(jnp.exp(jnp.sin(x)))), X)
    assert (count(eqn.params["jaxpr"], "sin"), count(eqn.params["jaxpr"], "exp")) == (1, 1)


def test_print_saved_residuals(capsys):
    print_saved_residuals(lambda p, n: jnp.sum(jnp.sin(p["w"]) * n["k"]), {"w": X}, n={"k": X})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "f32[3] from the argument n['k']"
    assert [line.split(" from ")[0] for line in lines[1:]] == ["f32[3] output of sin", "f32[3] output of cos"]
    assert all("test_checkpoint.py" in line for line in lines[1:])
    scale = jnp.asarray(X)
    print_saved_residuals(lambda x: x * scale, corejax.ShapeDtypeStruct((3,), F))
    assert capsys.readouterr().out == "f32[3] from a constant\n"
    with pytest.raises(TypeError, match="argument x is 'a'"):
        saved_residuals(lambda x: x, "a")


# -- every nesting -------------------------------------------------------------------------------------------


class CheckpointedBodies:
    """`lax` whose loops and conditionals run checkpointed functions."""

    def __getattr__(self, name):
        return getattr(lax, name)

    def scan(self, f, *args, **kwargs):
        return lax.scan(corejax.checkpoint(f), *args, **kwargs)

    def cond(self, pred, *args):
        return lax.cond(pred, *(corejax.checkpoint(a) if callable(a) else a for a in args))

    def switch(self, index, branches, *operands):
        return lax.switch(index, [corejax.checkpoint(b) for b in branches], *operands)


def outside(program):
    return corejax.checkpoint(program(lax, corejax.jit))


def inside(program):
    return program(CheckpointedBodies(), lambda f: corejax.jit(corejax.checkpoint(f)))


def both(program):
    return corejax.checkpoint(inside(program), policy=policies.dots_saveable)


programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


@programs
@pytest.mark.parametrize(
    ("wrap", "name"),
    [
        (outside, "grad"),
        (inside, "grad"),
        (both, "grad"),
        (both, "hvp"),
        (both, "linearize"),
        (both, "jvp"),
        *(pytest.param(w, "grad_grad", marks=pytest.mark.slow) for w in (outside, inside, both)),
    ],
)
def test_eager(program, wrap, name):
    x = BATCH[0]
    want = TRANSFORMS[name](corejax, program(lax, corejax.jit))(x)
    check(TRANSFORMS[name](corejax, wrap(program))(x), want, rtol=2e-4)


@programs
@pytest.mark.parametrize("wrap", [pytest.param(outside, marks=pytest.mark.slow), both])
@pytest.mark.parametrize("name", ["jit_grad", pytest.param("jit_grad_grad", marks=pytest.mark.slow)])
def test_jitted(program, wrap, name):
    transform, same = JITTED[name]
    want = TRANSFORMS[same](corejax, program(lax, corejax.jit))(BATCH[0])
    check(transform(corejax, wrap(program))(BATCH[0]), want, rtol=2e-4)


@programs
@pytest.mark.parametrize("name", ["vmap_grad", pytest.param("jit_grad_vmap", marks=pytest.mark.slow)])
def test_batched(program, name):
    transform, same = BATCHED[name]
    got = transform(corejax, both(program))(BATCH)
    plain = TRANSFORMS[same](corejax, program(lax, corejax.jit))
    for i in (0, 3):
        check(tree_map(lambda a, i=i: a[i], got), plain(BATCH[i]), rtol=2e-4)


def test_nested_against_jax():
    jax = pytest.importorskip("jax")

    def loss(api, numpy, lax):
        @api.checkpoint
        def block(w, x):
            for i in range(3):
                x = api.checkpoint(lambda w, x: numpy.tanh(x @ w))(w[i], x)
            return x

        def f(ws, x):
            return numpy.sum(lax.scan(lambda c, w: (block(w, c), numpy.sum(c)), x, ws)[0] ** 2)

        return f

    rng = np.random.default_rng(0)
    ws, x = rng.standard_normal((4, 3, 5, 5)).astype(F), rng.standard_normal((2, 5)).astype(F)
    want = jax.jit(jax.grad(loss(jax, jax.numpy, jax.lax), (0, 1)))(ws, x)
    ours = corejax.grad(loss(corejax, jnp, lax), (0, 1))
    check(ours(ws, x), tuple(np.asarray(a) for a in want), rtol=1e-4)
    check(corejax.jit(ours)(ws, x), tuple(np.asarray(a) for a in want), rtol=1e-4)


# -- arguments -----------------------------------------------------------------------------------------------


def test_pytrees_keywords_and_closures():
    scale = jnp.asarray(X)

    @corejax.remat
    def f(params, x0, *rest, shift):
        return {"out": [jnp.sin(params["w"] * scale) + shift, x0 + sum(rest)]}

    def plain(params, x0, *rest, shift):
        return {"out": [jnp.sin(params["w"] * scale) + shift, x0 + sum(rest)]}

    args, kwargs = ({"w": X}, X, 1.0, 2), {"shift": X * 2}
    check(f(*args, **kwargs), plain(*args, **kwargs))
    g = corejax.grad(lambda s, h: jnp.sum(h({"w": X}, X, shift=s)["out"][0] ** 2))
    check(g(X, f), g(X, plain))
    closed = corejax.grad(lambda x: jnp.sum(corejax.checkpoint(lambda y: jnp.sin(x * y))(X)))
    check(closed(X), np.cos(X * X) * X)


def test_static_arguments():
    seen = []

    def f(n, x, flag):
        seen.append((n, flag))
        return jnp.sin(x) * n if flag else x

    wrapped = corejax.checkpoint(f, static_argnums=(0, -1))
    check(corejax.grad(lambda x: jnp.sum(wrapped(3, x, True)))(X), 3 * np.cos(X))
    check(wrapped(3, X, False), X)
    assert seen == [(3, True), (3, False)]
    options = {"n": [3]}  # cannot be hashed: looked at anew by each call
    unhashable = corejax.checkpoint(lambda options, x: f(options["n"][0], x, True), static_argnums=0)
    for options["n"][0] in (3, 4):
        check(corejax.grad(lambda x: jnp.sum(unhashable(options, x)))(X), options["n"][0] * np.cos(X))
    with pytest.raises(ValueError, match="static_argnums has 5, but the call has 1 positional"):
        corejax.checkpoint(f, static_argnums=5)(X)
    with pytest.raises(TypeError, match="static_argnums must be an integer or several, got 'a'"):
        corejax.checkpoint(f, static_argnums="a")
    with pytest.raises(TypeError, match="checkpoint of function f: argument x is 'text'"):
        wrapped(3, "text", True)


def test_traced_once_for_equal_types():
    traces = []

    @corejax.checkpoint
    def f(x):
        traces.append(x)
        return jnp.sin(x)

    corejax.grad(lambda x: jnp.sum(f(f(f(x)))))(X)
    assert len(traces) == 1
    f(F(1))
    assert len(traces) == 2


def test_decorator_keeps_the_name():
    @corejax.checkpoint(policy=policies.dots_saveable, prevent_cse=False)
    def named(x):
        """Its docstring."""
        return x

    assert (named.__name__, named.__doc__) == ("named", "Its docstring.")
    (eqn,) = jaxpr(named, X).eqns
    assert (eqn.params["policy"], eqn.params["prevent_cse"]) == (policies.dots_saveable, False)


@pytest.mark.parametrize("flags, fence", [((False, False), False), (({"a": False, "b": True},), True), ((), False)])
def test_flags_of_arguments_are_read_as_a_whole(flags, fence):
    (eqn,) = jaxpr(corejax.checkpoint(jnp.sin, prevent_cse=flags), X).eqns
    assert eqn.params["prevent_cse"] is fence


def test_integer_and_empty_arguments():
    f = corejax.checkpoint(lambda n, x, e: jnp.sum(jnp.sin(x) * n) + jnp.sum(e))
    g = corejax.grad(f, argnums=(1, 2))
    check(g(np.int32(2), X, np.zeros(0, F)), (2 * np.cos(X), np.zeros(0, F)))
    check(corejax.jit(g)(np.int32(2), X, np.zeros(0, F)), (2 * np.cos(X), np.zeros(0, F)))


@pytest.mark.parametrize("dtype", ["complex64", "float16", "bfloat16", "float64"])
def test_dtypes_compiled(dtype):
    """The backward pass hides an element's bits from the compiler: of every dtype."""
    import ml_dtypes

    x = np.array([0.5, 1.5]).astype(getattr(ml_dtypes, dtype, dtype))

    def pulled(f):
        return lambda x: corejax.vjp(f, x)[1](x)[0]

    def f(x):
        return jnp.sin(jnp.sin(x)) * x

    want = np.asarray(pulled(f)(x))
    got = np.asarray(corejax.jit(pulled(corejax.checkpoint(f)))(x))
    assert got.dtype == want.dtype
    wide = np.complex128 if dtype == "complex64" else np.float64
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=2e-2 if "16" in dtype else 1e-5)


@pytest.mark.parametrize("x", [np.array([np.nan, 1.0], F), np.array([-np.inf, 0.0], F), np.array([-0.0], F)])
def test_any_bits_run_the_right_branch(x):
    f = corejax.checkpoint(lambda x: jnp.sum(x * x * x))
    np.testing.assert_array_equal(np.asarray(corejax.jit(corejax.grad(f))(x)), np.asarray(corejax.grad(f)(x)))


def test_bad_arguments():
    with pytest.raises(TypeError, match="checkpoint takes a function, got 3 of type int"):
        corejax.checkpoint(3)
    with pytest.raises(TypeError, match=r"policy must be a function such as .*got 'dots' of type str"):
        corejax.checkpoint(sines, policy="dots")
    with pytest.raises(TypeError, match=r"save_only_these_names: names must be strings, got \['a'\] of type list"):
        policies.save_only_these_names(["a"])
    with pytest.raises(TypeError, match="takes two policies, got None"):
        policies.save_from_both_policies(None, policies.dots_saveable)
    with pytest.raises(TypeError, match="checkpoint_name takes a string for a name, got 3"):
        checkpoint_name(X, 3)
    with pytest.raises(TypeError, match=r"argument x\['a'\] is 'b'"):
        checkpoint_name({"a": "b"}, "name")


def test_an_exception_leaves_nothing_behind():
    from corejax.extend.transforms import trace_stack

    @corejax.checkpoint
    def f(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        corejax.jit(corejax.grad(f))(X)
    assert len(trace_stack()) == 1


def test_static_arguments_by_name() -> None:
    traced = []

    def f(x: Any, *, power: int, mode: str = "sin", scale: Any = 1.0) -> Any:
        traced.append((power, mode))
        return scale * (jnp.sin(x) if mode == "sin" else x) ** power

    for names in (("power", "mode"), ["power", "mode", "unknown"], iter(["power", "mode"])):
        traced.clear()
        wrapped = corejax.checkpoint(f, static_argnames=names)
        for _ in range(2):
            np.testing.assert_allclose(wrapped(X, power=2, scale=2.0), 2 * np.sin(X) ** 2, rtol=1e-6)
            np.testing.assert_allclose(wrapped(X, power=3, mode="id"), np.asarray(X) ** 3, rtol=1e-6)
        assert traced == [(2, "sin"), (3, "id")]
    grads = corejax.grad(lambda x: corejax.checkpoint(f, static_argnames="power")(x, power=3).sum())(X)
    np.testing.assert_allclose(grads, 3 * np.sin(X) ** 2 * np.cos(X), rtol=1e-5)
    decorated = corejax.checkpoint(static_argnames="power")(f)
    np.testing.assert_allclose(decorated(X, power=1), np.sin(X), rtol=1e-6)
    by_list = corejax.checkpoint(lambda x, *, power: x ** power[0], static_argnames="power")
    np.testing.assert_allclose(by_list(X, power=[2]), np.asarray(X) ** 2, rtol=1e-6)
    with pytest.raises(TypeError, match="static_argnames must be a name or several, got 3"):
        corejax.checkpoint(f, static_argnames=3)


def test_policies_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    for name, theirs in vars(jax.checkpoint_policies).items():
        ours = getattr(policies, name)
        assert callable(ours) and not difference(ours, theirs), name


def test_policies_that_move_what_is_kept() -> None:
    """Moved to another memory or not, it is kept: nothing is computed again, and values are the same."""
    kinds = {"offload_src": "device", "offload_dst": "pinned_host"}
    both = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"], **kinds
    )

    def f(x: Any) -> Any:
        return jnp.sin(checkpoint_name(jnp.sin(checkpoint_name(jnp.sin(x), "a")), "b"))

    def kept(policy: Any, g: Any, x: Any) -> list[str]:
        return [r.aval.str_short() for r in saved_residuals(corejax.checkpoint(g, policy=policy), x)]

    assert kept(both, f, X) == kept(policies.save_only_these_names("a", "b"), f, X) == ["f32[3]"] * 3
    product = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    square = np.eye(3, dtype=F)
    assert kept(product, lambda x: jnp.sin(x @ x), square) == ["f32[3,3]"] * 2
    assert kept(product, lambda x: jnp.sin(jnp.sin(x)), square) == ["f32[3,3]"]
    for policy in (both, product):
        g = corejax.jit(corejax.grad(lambda x, policy=policy: jnp.sum(corejax.checkpoint(f, policy=policy)(x))))
        np.testing.assert_allclose(g(X), corejax.grad(lambda x: jnp.sum(f(x)))(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("saved", "moved", "to", "error", "message"),
    [
        (["a"], ["b", "a"], "pinned_host", ValueError, "'a' can be saved or offloaded, not both"),
        ("ab", [], "pinned_host", TypeError, "takes lists of names, got 'ab'"),
        ([], [3], "pinned_host", TypeError, "names must be strings, got 3"),
        ([], [], None, TypeError, "offload_dst must be a kind of memory such as 'pinned_host', got None"),
    ],
)
def test_wrong_arguments_of_policies_that_move(saved: Any, moved: Any, to: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=f"save_and_offload_only_these_names.*{message}"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=saved, names_which_can_be_offloaded=moved, offload_src="device", offload_dst=to
        )
