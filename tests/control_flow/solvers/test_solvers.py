"""`custom_linear_solve` and `custom_root`: against what they mean, under every transformation."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend.programs import check_jaxpr
from corejax.extend.transforms import trace_stack

F = np.float32
XS = np.array([1.0, 2.0, 3.0], F)
A = np.array([[2.0, 1.0], [0.5, 3.0]], F)
B = np.array([1.0, -2.0], F)
jits = pytest.mark.parametrize("jit", [lambda g: g, corejax.jit], ids=["eager", "jit"])


@pytest.fixture(autouse=True)
def clean_stack():
    yield
    assert len(trace_stack()) == 1


def near(got, want, rtol=2e-5):
    leaves, wanted = (corejax.tree_util.tree_leaves(each) for each in (got, want))
    assert len(leaves) == len(wanted)
    for a, b in zip(leaves, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=2e-6)


# -- custom_linear_solve -------------------------------------------------------------------------------------


def inverse(a):
    rows = jnp.stack([jnp.stack([a[1, 1], -a[0, 1]]), jnp.stack([-a[1, 0], a[0, 0]])])
    return rows / (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0])


def plain(a, b):
    return inverse(a) @ b


def solved(a, b):
    return lax.custom_linear_solve(
        lambda x: a @ x,
        b,
        lambda matvec, b: lax.stop_gradient(inverse(a)) @ b,
        lambda vecmat, b: inverse(a).T @ b,
    )


USES = {
    "value": lambda f: f(A, B),
    "grad": lambda f: corejax.grad(lambda a, b: (f(a, b) ** 3).sum(), (0, 1))(A, B),
    "jvp": lambda f: corejax.jvp(f, (A, B), (A * A, B + 1)),
    "jvp of b": lambda f: corejax.jvp(lambda b: f(A, b), (B,), (B + 1,)),
    "jvp of a": lambda f: corejax.jvp(lambda a: f(a, B), (A,), (A * A,)),
    "linearize": lambda f: corejax.linearize(f, A, B)[1](A * A, B),
    "hessian of a": lambda f: corejax.hessian(lambda a: (f(a, B) ** 3).sum())(A),
    "hessian of b": lambda f: corejax.hessian(lambda b: (f(A, b) ** 3).sum())(B),
    "grad of grad": lambda f: corejax.grad(lambda a: corejax.grad(lambda b: (f(a, b) ** 3).sum())(B).sum())(A),
    "vmap of b": lambda f: corejax.vmap(f, (None, 1), 1)(A, np.stack([B, 2 * B, B + 1], 1)),
    "vmap of a": lambda f: corejax.vmap(f, (0, None))(np.stack([A, 2 * A]), B),
    "vmap of both": lambda f: corejax.vmap(f)(np.stack([A, 2 * A]), np.stack([B, B + 1])),
    "vmap of grad": lambda f: corejax.vmap(corejax.grad(lambda a: (f(a, B) ** 2).sum()))(np.stack([A, 2 * A])),
    "grad of vmap": lambda f: corejax.grad(lambda a: (corejax.vmap(f, (0, None))(a, B) ** 2).sum())(
        np.stack([A, 2 * A])
    ),
    "grad of vmap of b": lambda f: corejax.grad(
        lambda a: (corejax.vmap(f, (None, 0))(a, np.stack([B, B + 1])) ** 2).sum()
    )(A),
    "scan": lambda f: corejax.grad(lambda a: lax.scan(lambda c, _: (f(a, c), c), B, None, length=3)[1].sum())(A),
    "cond": lambda f: corejax.grad(lambda a: lax.cond(a[0, 0] > 0, lambda: f(a, B), lambda: B).sum())(A),
}


@pytest.mark.sampled
@jits
@pytest.mark.parametrize("name", USES)
def test_linear_solve(name, jit):
    near(USES[name](jit(solved)), USES[name](plain), rtol=2e-4)


@pytest.mark.parametrize("name", ["grad", "hessian of a", "vmap of grad"])
def test_linear_solve_under_jit(name):
    near(corejax.jit(lambda: USES[name](solved))(), USES[name](plain), rtol=2e-4)


def test_linear_solve_symmetric_with_aux_and_pytrees():
    def f(d, b):
        return lax.custom_linear_solve(
            lambda x: {"u": d * x["u"], "v": 2.0 * x["v"]},
            b,
            lambda mv, b: ({"u": b["u"] / d, "v": b["v"] / 2.0}, {"residual": mv(b)["u"], "n": 3}),
            symmetric=True,
            has_aux=True,
        )

    b = {"u": XS, "v": F(4)}
    for g in (f, corejax.jit(f)):
        x, aux = g(2.0, b)
        near(x, {"u": XS / 2, "v": 2.0})
        near(aux, {"residual": 2 * XS, "n": 3})
        near(corejax.grad(lambda d, g=g: g(d, b)[0]["u"].sum())(2.0), -XS.sum() / 4)
        near(corejax.grad(lambda b, g=g: g(2.0, b)[0]["u"].sum())(b), {"u": np.full(3, 0.5), "v": 0.0})
        near(corejax.grad(lambda b, g=g: g(2.0, b)[1]["residual"].sum())(b), {"u": np.zeros(3), "v": 0.0})
        near(corejax.vmap(g, (0, None))(XS, b)[0]["u"], XS / XS[:, None])
        near(corejax.jvp(g, (2.0, b), (1.0, b))[1][1]["residual"], np.zeros(3))


def test_linear_solve_by_iteration():
    """The solver is not differentiated, so it may be a loop that reverse mode would not take."""

    def f(a, b):
        def jacobi(matvec, b):
            return lax.scan(lambda x, _: (x + (b - matvec(x)) / 3.0, None), b, None, length=60)[0]

        return lax.custom_linear_solve(lambda x: a @ x, b, jacobi, jacobi)

    near(
        corejax.grad(lambda a: (f(a, B) ** 2).sum())(A), corejax.grad(lambda a: (plain(a, B) ** 2).sum())(A), rtol=1e-3
    )


def test_linear_solve_against_jax():
    jax = pytest.importorskip("jax")

    def results(api, jnp, lax):
        def f(a, b):
            inv = lambda a: (
                jnp.stack([jnp.stack([a[1, 1], -a[0, 1]]), jnp.stack([-a[1, 0], a[0, 0]])])
                / (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0])
            )
            return lax.custom_linear_solve(lambda x: a @ x, b, lambda mv, b: inv(a) @ b, lambda vm, b: inv(a).T @ b)

        grad = api.grad(lambda a, b: (f(a, b) ** 3).sum(), (0, 1))
        return [f(A, B), grad(A, B), api.vmap(grad, (0, None))(np.stack([A, 2 * A]), B), api.jvp(f, (A, B), (A * A, B))]

    near(results(corejax, jnp, lax), results(jax, jax.numpy, jax.lax), rtol=2e-4)


def test_linear_solve_errors():
    with pytest.raises(TypeError, match="transposed equation, for which it needs a solver; pass transpose_solve"):
        corejax.grad(lambda b: lax.custom_linear_solve(lambda x: A @ x, b, lambda mv, b: b).sum())(B)
    with pytest.raises(TypeError, match=r"matvec <lambda> must return.*\n  float32\[2\]\nit returns\n  float32\[\]"):
        lax.custom_linear_solve(lambda x: x.sum(), B, lambda mv, b: b)
    with pytest.raises(TypeError, match=r"solver <lambda> must return.*\n  float32\[2\]\nit returns\n  \("):
        lax.custom_linear_solve(lambda x: x, B, lambda mv, b: (b, b))
    with pytest.raises(TypeError, match=r"with has_aux=True: <lambda> must return \(x, aux\)"):
        lax.custom_linear_solve(lambda x: x, B, lambda mv, b: b, has_aux=True)
    with pytest.raises(TypeError, match="calls its linear function on structure"):
        lax.custom_linear_solve(lambda x: x, B, lambda mv, b: mv((b, b)))
    lax.custom_linear_solve(lambda x: A @ x, B, lambda mv, b: b)  # no transpose is asked for


def test_linear_solve_program():
    closed = corejax.make_jaxpr(solved)(A, B)
    check_jaxpr(closed)
    (eqn,) = closed.eqns
    assert eqn.primitive.name == "custom_linear_solve"
    assert eqn.params["const_lengths"] == (1, 1, 1, 1)
    assert [str(eqn.params[k].jaxpr).count("dot_general") for k in ("matvec", "vecmat", "solve")] == [1, 1, 1]


# -- custom_root ---------------------------------------------------------------------------------------------


def root(p, guess=1.0):
    """The square root by Newton's method."""

    def newton(f, x):
        return lax.scan(lambda x, _: (x - f(x) / (2 * x), None), x, None, length=8)[0]

    return lax.custom_root(lambda x: x * x - p, guess, newton, lambda g, y: y / g(1.0))


@jits
def test_root(jit):
    f = jit(root)
    near(f(2.0), np.sqrt(2))
    near(jit(corejax.grad(f))(2.0), 0.5 / np.sqrt(2))
    near(corejax.jvp(f, (2.0,), (3.0,)), (np.sqrt(2), 1.5 / np.sqrt(2)))
    near(jit(corejax.grad(corejax.grad(f)))(2.0), -0.25 * 2**-1.5)
    near(corejax.hessian(f)(2.0), -0.25 * 2**-1.5)
    near(jit(corejax.vmap(f))(XS), np.sqrt(XS))
    near(jit(corejax.vmap(corejax.grad(f)))(XS), 0.5 / np.sqrt(XS))
    near(corejax.grad(lambda x: jit(corejax.vmap(f))(x).sum())(XS), 0.5 / np.sqrt(XS))
    near(corejax.grad(lambda guess: f(2.0, guess))(1.0), 0.0)
    near(corejax.grad(lambda p: lax.scan(lambda c, _: (f(c), 0), p, None, length=2)[0])(16.0), 0.25 * 16**-0.75)


def test_root_of_pytrees_with_aux_and_a_linear_solver():
    def f(a, b):
        def solver(f, guess):
            return {"x": plain(a, b)}, {"norm": f(guess)["x"].sum()}

        def tangent_solve(g, y):
            jac = jnp.stack([g({"x": e})["x"] for e in np.eye(2, dtype=F)], 1)
            return {"x": inverse(jac) @ y["x"]}

        return lax.custom_root(lambda x: {"x": a @ x["x"] - b}, {"x": B}, solver, tangent_solve, has_aux=True)

    for g in (f, corejax.jit(f)):
        x, aux = g(A, B)
        near(x["x"], plain(A, B))
        near(aux["norm"], (A @ B - B).sum())
        got = corejax.grad(lambda a, b, g=g: (g(a, b)[0]["x"] ** 2).sum() + g(a, b)[1]["norm"], (0, 1))(A, B)
        near(got, corejax.grad(lambda a, b: (plain(a, b) ** 2).sum(), (0, 1))(A, B), rtol=2e-4)


def test_root_against_jax():
    jax = pytest.importorskip("jax")

    def results(api, lax):
        def f(p):
            newton = lambda f, x: (
                lax.fori_loop(0, 8, lambda i, x: x - f(x) / (2 * x), x)
                if api is jax
                else lax.scan(lambda x, _: (x - f(x) / (2 * x), None), x, None, length=8)[0]
            )
            return lax.custom_root(lambda x: x * x - p * p * p, 1.0, newton, lambda g, y: y / g(1.0))

        return [
            f(2.0),
            api.grad(f)(2.0),
            api.jvp(f, (2.0,), (3.0,)),
            api.vmap(api.grad(f))(XS),
            api.jit(api.grad(f))(2.0),
        ]

    near(results(corejax, lax), results(jax, jax.lax), rtol=1e-4)


def test_root_errors():
    good = lambda f, x: x
    with pytest.raises(
        TypeError, match=r"the function <lambda> must return.*\n  float32\[3\]\nit returns\n  float32\[\]"
    ):
        lax.custom_root(lambda x: x.sum(), XS, good, good)
    with pytest.raises(TypeError, match="the solver <lambda> must return"):
        lax.custom_root(lambda x: x, XS, lambda f, x: x.sum(), good)
    with pytest.raises(TypeError, match="the tangent solver <lambda> must return"):
        corejax.grad(lambda p: lax.custom_root(lambda x: x - p, XS, good, lambda g, y: y.sum()).sum())(XS)
    with pytest.raises(TypeError, match=r"with has_aux=True: <lambda> must return \(x, aux\)"):
        lax.custom_root(lambda x: x, XS, good, good, has_aux=True)
    with pytest.raises(TypeError, match="custom_root of function"):
        lax.custom_root(lambda x: x, "x", good, good)
