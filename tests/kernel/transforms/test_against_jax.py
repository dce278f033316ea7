"""Signatures, semantics and result structures of the transformations, compared with the real jax."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import corejax
from corejax import hessian, jacfwd, jacobian, jacrev  # noqa: F401  # of lax_basic, which is off in the tests
from tests.kernel.oracle import assert_as_jax, jax_and_functions

X = np.array([0.5, -1.0, 2.0], np.float32)
Y = np.array([1.5, 0.25, -0.75], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
S = np.float32(0.7)
N = np.array([1, 2, 3], np.int32)
C = np.complex64(0.5 - 1.25j)
E = np.zeros((0, 3), np.float32)


def scalar(n):
    return lambda x: n.sum_(n.mul(n.sin(x), x))


def mixed(n):
    return lambda x, y: n.sum_(n.mul(n.sin(x), n.mul(y, y)))


def of_tree(n):
    return lambda d, y=2.0: n.sum_(n.mul(n.sin(d["w"]), d["b"][0])) * y


TREE = {"w": X, "b": (S, None)}

GRADIENTS = {
    "scalar": lambda t, n: t.grad(n.sin)(S),
    "python number": lambda t, n: t.grad(n.sin)(0.3),
    "vector": lambda t, n: t.grad(scalar(n))(X),
    "argnums 1": lambda t, n: t.grad(mixed(n), argnums=1)(X, Y),
    "argnums tuple": lambda t, n: t.grad(mixed(n), argnums=(1, 0))(X, Y),
    "argnums of length 1": lambda t, n: t.grad(mixed(n), argnums=(0,))(X, Y),
    "argnums list": lambda t, n: t.grad(mixed(n), argnums=[0, 1])(X, Y),
    "argnums negative": lambda t, n: t.grad(mixed(n), argnums=-1)(X, Y),
    "tree": lambda t, n: t.grad(of_tree(n))(TREE),
    "tree with kwargs": lambda t, n: t.grad(of_tree(n))(TREE, y=3.0),
    "value and grad": lambda t, n: t.value_and_grad(mixed(n), (0, 1))(X, Y),
    "aux": lambda t, n: t.grad(lambda x: (n.sum_(x), {"s": n.sin(x), "name": "text"}), has_aux=True)(X),
    "value, grad and aux": lambda t, n: t.value_and_grad(lambda x: (n.sum_(x), [n.sin(x), x]), has_aux=True)(X),
    "allow int": lambda t, n: t.grad(lambda i: n.sum_(n.mul(X, 2.0)), allow_int=True)(N),
    "allow int beside float": lambda t, n: t.grad(lambda d: n.sum_(d["x"]), allow_int=True)({"i": N, "x": X}),
    "constant": lambda t, n: t.grad(lambda x: n.sum_(Y))(X),
    "literal": lambda t, n: t.value_and_grad(lambda x: 2.0)(X),
    "unused argument": lambda t, n: t.grad(lambda x, y: n.sum_(y), (0, 1))(X, Y),
    "identity": lambda t, n: t.value_and_grad(lambda x: x)(S),
    "fan out": lambda t, n: t.grad(lambda x: n.mul(n.add(x, x), n.mul(x, x)))(S),
    "empty array": lambda t, n: t.grad(lambda x: n.sum_(n.sin(x)))(E),
    "comparison": lambda t, n: t.grad(lambda x: n.sum_(n.mul(n.astype(n.greater(x, 0.0), np.float32), x)))(X),
    "control flow": lambda t, n: t.grad(lambda x: n.sin(x) if x > 0 else n.cos(x))(S),
    "grad of grad": lambda t, n: t.grad(t.grad(lambda x: n.mul(n.sin(x), x)))(S),
    "four times": lambda t, n: t.grad(t.grad(t.grad(t.grad(n.sin))))(S),
    "closed-over tracer": lambda t, n: t.grad(lambda x: t.grad(lambda y: n.mul(n.sin(y), x))(x))(S),
    "perturbation confusion": lambda t, n: t.grad(lambda x: n.mul(x, t.grad(lambda y: n.add(x, y))(1.0)))(1.0),
    "through a call": lambda t, n: t.grad(n.call(scalar(n)))(X),
    "twice through a call": lambda t, n: t.grad(lambda x: n.sum_(t.grad(n.call(scalar(n)))(x)))(X),
    "float16": lambda t, n: t.grad(scalar(n))(X.astype(np.float16)),
    "conversion": lambda t, n: t.grad(lambda x: n.sum_(n.astype(x, np.float16)))(X),
}

COMPLEX = {
    "real output": lambda t, n: t.grad(lambda z: n.real(n.mul(z, z)))(C),
    "imaginary part": lambda t, n: t.grad(lambda z: n.imag(n.sin(z)))(C),
    "modulus squared": lambda t, n: t.grad(lambda z: n.add(n.mul(n.real(z), n.real(z)), n.mul(n.imag(z), n.imag(z))))(
        C
    ),
    "holomorphic": lambda t, n: t.grad(lambda z: n.mul(n.sin(z), z), holomorphic=True)(C),
    "through complex": lambda t, n: t.grad(lambda x: n.real(n.sin(n.complex_(x, n.mul(x, 2.0)))))(S),
    "jvp": lambda t, n: t.jvp(n.sin, (C,), (np.complex64(1j),)),
    "vjp": lambda t, n: t.vjp(lambda z: n.mul(z, z), C)[1](np.complex64(1 - 1j)),
    "vjp of a real part": lambda t, n: t.vjp(n.real, C)[1](S),
    "jacfwd": lambda t, n: t.jacfwd(n.sin, holomorphic=True)(C),
    "jacrev": lambda t, n: t.jacrev(n.sin, holomorphic=True)(C),
    "hessian": lambda t, n: t.hessian(lambda z: n.mul(n.sin(z), z), holomorphic=True)(C),
}

FORWARD_AND_REVERSE = {
    "jvp": lambda t, n: t.jvp(mixed(n), (X, Y), (Y, X)),
    "jvp with lists": lambda t, n: t.jvp(n.sin, [X], [Y]),
    "jvp of a tree": lambda t, n: t.jvp(
        lambda d: {"o": n.sin(d["a"]), "k": d["b"]}, ({"a": X, "b": S},), ({"a": Y, "b": S},)
    ),
    "jvp with aux": lambda t, n: t.jvp(lambda x: (n.sin(x), n.cos(x)), (X,), (Y,), has_aux=True),
    "jvp of a constant": lambda t, n: t.jvp(lambda x: Y, (X,), (X,)),
    "jvp with float0": lambda t, n: t.jvp(lambda x, i: n.sin(x), (X, N), (Y, np.zeros(3, corejax.float0))),
    "jvp of integers": lambda t, n: t.jvp(lambda x, i: (x, i), (X, N), (Y, np.zeros(3, corejax.float0))),
    "jvp of jvp": lambda t, n: t.jvp(lambda x: t.jvp(n.sin, (x,), (x,))[1], (X,), (Y,)),
    "jvp of vmap of grad": lambda t, n: t.jvp(t.vmap(t.grad(lambda x: n.mul(n.sin(x), x))), (X,), (Y,)),
    "vjp": lambda t, n: (lambda out, pull: (out, pull(S)))(*t.vjp(mixed(n), X, Y)),
    "vjp of a tree": lambda t, n: t.vjp(lambda d: {"o": n.sin(d["a"]), "k": d["b"]}, {"a": X, "b": S})[1](
        {"o": Y, "k": S}
    ),
    "vjp with aux": lambda t, n: (lambda out, pull, aux: (out, pull(Y), aux))(
        *t.vjp(lambda x: (n.sin(x), [x]), X, has_aux=True)
    ),
    "vjp of an unused argument": lambda t, n: t.vjp(lambda x, y: n.sin(x), X, Y)[1](Y),
    "vjp of integers": lambda t, n: t.vjp(lambda x, i: n.sin(x), X, N)[1](Y),
    "vjp twice called": lambda t, n: (lambda pull: [pull(X), pull(Y)])(t.vjp(n.sin, X)[1]),
    "vmap of a pullback": lambda t, n: t.vmap(t.vjp(n.sin, X)[1])(np.eye(3, dtype=np.float32)),
    "grad of a pullback": lambda t, n: t.grad(lambda ct: n.sum_(n.sin(t.vjp(n.sin, X)[1](ct)[0])))(Y),
    "grad through vjp": lambda t, n: t.grad(lambda x: n.sum_(t.vjp(n.sin, x)[1](Y)[0]))(X),
    "jvp of a pullback": lambda t, n: t.jvp(t.vjp(n.sin, X)[1], (Y,), (X,)),
    "linearize": lambda t, n: (lambda out, f: (out, f(X, Y)))(*t.linearize(mixed(n), X, Y)),
    "linearize of a tree": lambda t, n: t.linearize(lambda d: [d["a"], n.sin(d["b"])], {"a": X, "b": S})[1](
        {"a": Y, "b": S}
    ),
    "linearize a constant": lambda t, n: t.linearize(lambda x: Y, X)[1](X),
    "vmap of a linearized function": lambda t, n: t.vmap(t.linearize(n.sin, X)[1])(np.eye(3, dtype=np.float32)),
    "linearize inside grad": lambda t, n: t.grad(lambda x: n.sum_(t.linearize(n.sin, x)[1](Y)))(X),
    "linear_transpose": lambda t, n: t.linear_transpose(lambda x: n.mul(x, 3.0), X)(Y),
    "linear_transpose of two": lambda t, n: t.linear_transpose(lambda x, y: [n.add(x, y), n.mul(y, 2.0)], X, Y)([X, Y]),
    "linear_transpose unused": lambda t, n: t.linear_transpose(lambda x, y: n.mul(x, 3.0), X, Y)(Y),
    "linear_transpose of shapes": lambda t, n: t.linear_transpose(
        lambda x: n.sum_(x), t.ShapeDtypeStruct((3,), np.float32)
    )(S),
}

JACOBIANS = {
    "jacfwd": lambda t, n: t.jacfwd(n.sin)(X),
    "jacrev": lambda t, n: t.jacrev(n.sin)(X),
    "jacfwd of a matrix": lambda t, n: t.jacfwd(lambda x: n.transpose(n.sin(x)))(M),
    "jacrev of a matrix": lambda t, n: t.jacrev(lambda x: n.transpose(n.sin(x)))(M),
    "jacfwd of two": lambda t, n: t.jacfwd(n.mul, argnums=(0, 1))(X, Y),
    "jacrev of two": lambda t, n: t.jacrev(n.mul, argnums=(0, 1))(X, Y),
    "jacfwd of negative": lambda t, n: t.jacfwd(n.mul, argnums=-1)(X, Y),
    "jacfwd of a tree": lambda t, n: t.jacfwd(lambda d: {"o": n.mul(d["a"], d["b"]), "s": d["b"]})({"a": X, "b": S}),
    "jacrev of a tree": lambda t, n: t.jacrev(lambda d: {"o": n.mul(d["a"], d["b"]), "s": d["b"]})({"a": X, "b": S}),
    "jacfwd with aux": lambda t, n: t.jacfwd(lambda x: (n.sin(x), n.cos(x)), has_aux=True)(X),
    "jacrev with aux": lambda t, n: t.jacrev(lambda x: (n.sin(x), n.cos(x)), has_aux=True)(X),
    "jacobian of a scalar": lambda t, n: t.jacfwd(n.sin)(S),
    "jacfwd of a constant": lambda t, n: t.jacfwd(lambda x: Y)(X),
    "jacrev of a constant": lambda t, n: t.jacrev(lambda x: Y)(X),
    "jacfwd of an empty array": lambda t, n: t.jacfwd(n.sin)(E),
    "jacrev of an empty array": lambda t, n: t.jacrev(n.sin)(E),
    "hessian": lambda t, n: t.hessian(scalar(n))(X),
    "hessian of two": lambda t, n: t.hessian(mixed(n), argnums=(0, 1))(X, Y),
    "hessian of a tree": lambda t, n: t.hessian(of_tree(n))({"w": X, "b": (S, None)}),
    "jacrev of jacfwd": lambda t, n: t.jacrev(t.jacfwd(scalar(n)))(X),
    "hessian of a call": lambda t, n: t.hessian(n.call(scalar(n)))(X),
    "kwargs": lambda t, n: t.jacfwd(lambda x, *, k: n.mul(x, k))(X, k=2.0),
    "vmap of hessian": lambda t, n: t.vmap(t.hessian(scalar(n)))(M),
}

TABLES = {"grad": GRADIENTS, "complex": COMPLEX, "forward and reverse": FORWARD_AND_REVERSE, "jacobian": JACOBIANS}


@pytest.mark.parametrize(
    "program", [pytest.param(p, id=f"{table}: {name}") for table, cases in TABLES.items() for name, p in cases.items()]
)
def test_as_jax(program):
    assert_as_jax(program)


def test_signatures_are_those_of_jax():
    jax, _ = jax_and_functions()
    # Gone from jax itself, or about sharding and meshes.
    absent = {"reduce_axes", "sum_match"}
    for name in [
        "jvp",
        "vjp",
        "grad",
        "value_and_grad",
        "linearize",
        "linear_transpose",
        "vmap",
        "make_jaxpr",
        "eval_shape",
        "jacfwd",
        "jacrev",
        "hessian",
    ]:
        theirs = inspect.signature(getattr(jax, name)).parameters.values()
        wanted = [(p.name, p.kind, p.default) for p in theirs if p.name not in absent]
        got = [(p.name, p.kind, p.default) for p in inspect.signature(getattr(corejax, name)).parameters.values()]
        assert got == wanted, name
    assert corejax.jacobian is corejax.jacrev
