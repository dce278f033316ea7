"""The functions under transformations: the documents' jaxprs, omnistaging, jit, vmap, grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import grad, jit, make_jaxpr, vmap
from corejax.extend.transforms import JitTracer
from tests.numpy_api.oracle import check_compiled, jax

# -- jaxprs ------------------------------------------------------------------------------------------------------


def test_dot_as_the_tracing_page_prints_it() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.dot(x + 1, y + 1)

    assert str(make_jaxpr(f)(np.ones((3, 4), np.float32), np.ones(4, np.float32))) == (
        "{ lambda ; a:f32[3,4] b:f32[4]. let\n"
        "    c:f32[3,4] = add a 1.0:f32[]\n"
        "    d:f32[4] = add b 1.0:f32[]\n"
        "    e:f32[3] = dot_general[\n"
        "      dimension_numbers=(([1], [0]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] c d\n"
        "  in (e,) }"
    )


def test_sum_as_the_jaxpr_notes_print_it() -> None:
    def func1(first: Any, second: Any) -> Any:
        temp = first + jnp.sin(second) * 3.0
        return jnp.sum(temp)

    assert str(make_jaxpr(func1)(jnp.zeros(8), jnp.ones(8))) == (
        "{ lambda ; a:f32[8] b:f32[8]. let\n"
        "    c:f32[8] = sin b\n"
        "    d:f32[8] = mul c 3.0:f32[]\n"
        "    e:f32[8] = add a d\n"
        "    f:f32[] = reduce_sum[axes=(0,)] e\n"
        "  in (f,) }"
    )


SAME_AS_JAX: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (lambda xp, x: xp.zeros_like(x), ((2, 3),)),
    (lambda xp, x: xp.max(x), ((2, 3),)),
    (lambda xp, x: xp.sum(x) * 1, ((0,),)),
    (lambda xp, x, y: xp.matmul(x, y), ((2, 3), (3, 4))),
    (lambda xp, x: xp.isfinite(x), ((2, 3),)),
    (lambda xp, x: xp.isnan(x), ((2, 3),)),
    (lambda xp, x: xp.power(x, 2), ((2, 3),)),
    (lambda xp, x: xp.reciprocal(x), ((2, 3),)),
    (lambda xp, x: xp.maximum(x, 0.0), ((2, 3),)),
    (lambda xp, x: xp.transpose(x), ((2, 3),)),
    (lambda xp: xp.arange(3.0) + 1, ()),
]


@pytest.mark.skipif(jax is None, reason="the oracle is not installed")
@pytest.mark.parametrize("row", SAME_AS_JAX, ids=[str(i) for i in range(len(SAME_AS_JAX))])
def test_the_equations_are_those_of_jax(row: Any) -> None:
    import jax.numpy as jax_numpy

    f, shapes = row

    def names(make: Any, xp: Any) -> list[str]:
        closed = make(lambda *xs: f(xp, *xs))(*(np.ones(s, np.float32) for s in shapes))
        return [eqn.primitive.name for eqn in closed.jaxpr.eqns]

    assert names(make_jaxpr, jnp) == names(jax.make_jaxpr, jax_numpy)


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda x: jnp.mean(x), 2),
        (lambda x: jnp.where(x > 0, x, 0.0), 2),
        (lambda x: jnp.clip(x, 0, 1), 2),
        (lambda x: jnp.multiply(2, x), 1),
        (lambda x: jnp.var(x), 6),
        (lambda x: jnp.eye(3), 4),
        (lambda x: jnp.expand_dims(x, 0), 1),
        (lambda x: jnp.asarray(x), 0),
        (lambda x: jnp.ravel(x), 1),
        (lambda x: corejax.nn.relu(x), 2),
        (lambda x: corejax.nn.softmax(x), 8),
    ],
)
def test_programs_are_short(f: Callable[[Any], Any], count: int) -> None:
    assert len(make_jaxpr(f)(jnp.ones((2, 3))).jaxpr.eqns) <= count


# -- omnistaging -------------------------------------------------------------------------------------------------


def test_creation_is_staged() -> None:
    seen = {}

    def f(x: Any) -> Any:
        seen.update(
            array=jnp.array(x.shape),
            prod=jnp.array(x.shape).prod(),
            scalar=jnp.asarray(3),
            constant=jnp.asarray(np.ones(2, np.float32)),
            zeros=jnp.zeros(2),
        )
        return x

    jit(f)(jnp.ones((2, 3)))
    assert {name: type(x) for name, x in seen.items()} == dict.fromkeys(seen, JitTracer)
    assert repr(seen["prod"]) == "JitTracer(int32[])"
    vmap(f)(jnp.ones((2, 3)))
    assert int(seen["prod"]) == 3, "nothing is staged by vmap alone"


def test_a_traced_shape_is_refused_with_its_origin() -> None:
    @jit
    def f(x: Any) -> Any:
        return x.reshape(jnp.array(x.shape).prod())

    with pytest.raises(TypeError) as caught:
        f(jnp.ones((2, 3)))
    message = str(caught.value)
    assert message.startswith(
        "Shapes must be 1D sequences of concrete values of integer type, got [JitTracer(int32[])].\n"
        "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.\n"
        "The error occurred while tracing the function f at "
    )
    assert "operation a:i32[] = reduce_prod[axes=(0,)] b" in message


def test_scalar_constants_become_literals() -> None:
    closed = make_jaxpr(lambda x: (x * jnp.asarray(2.0), jnp.asarray(3)))(1.5)
    assert not closed.consts
    (eqn,) = closed.jaxpr.eqns
    assert eqn.primitive.name == "mul" and float(eqn.invars[1].val) == 2 and int(closed.jaxpr.outvars[1].val) == 3


def test_constants_inside_derivatives() -> None:
    f = jit(grad(lambda x: jnp.sum(jnp.array([1.0, 2.0]) * x * jnp.asarray(3.0))))
    np.testing.assert_array_equal(f(jnp.ones(2)), [3, 6])
    np.testing.assert_array_equal(vmap(jit(lambda x: x + jnp.arange(2)))(jnp.ones((3, 2))), [[1, 2]] * 3)


# -- transformations ---------------------------------------------------------------------------------------------

X = np.array([[0.3, -1.2, 2.5], [1.0, 0.0, -0.7]], np.float32)
M = X @ X.T

PROGRAMS: list[Callable[[Any, Any], Any]] = [
    lambda xp, x: xp.tanh(x) / (1 + xp.exp(-x)),
    lambda xp, x: xp.where(x > 0, xp.sqrt(xp.abs(x)), x**2),
    lambda xp, x: xp.clip(x, -1, 1) + xp.maximum(x, 0.1) - xp.minimum(x, 2),
    lambda xp, x: x % 0.7 + x // 0.7,
    lambda xp, x: xp.stack([xp.sum(x, 0), xp.mean(x, 0), xp.var(x, 0), xp.max(x, 0), xp.min(x, 0)]),
    lambda xp, x: xp.argmax(x, 1) + xp.argmin(x, axis=1),
    lambda xp, x: xp.all(x > -1, 0) | xp.any(x > 2, 0),
    lambda xp, x: xp.concatenate([xp.roll(x, 1, 1), xp.flip(x, 0), xp.tile(x, (1, 1))], 1),
    lambda xp, x: xp.pad(xp.transpose(x), 1, constant_values=2.0),
    lambda xp, x: xp.einsum("ij,kj->ik", x, x) @ xp.eye(2),
    lambda xp, x: xp.linspace(x, 1.0, 4),
    lambda xp, x: xp.tril(x) + xp.arange(3.0),
    lambda xp, x: xp.isnan(xp.log(x)) & xp.isfinite(x),
    lambda xp, x: xp.log1p(xp.expm1(xp.square(x))) + xp.sin(x) * xp.cos(x),
    lambda xp, x: xp.std(x, axis=1, ddof=1) + xp.prod(x, axis=1),
    lambda xp, x: xp.split(x, 3, axis=1),
    lambda xp, x: xp.astype(x * 3, "int8"),
]


@pytest.mark.parametrize("f", PROGRAMS, ids=[str(i) for i in range(len(PROGRAMS))])
def test_compiled(f: Callable[..., Any]) -> None:
    check_compiled(f, X)


@pytest.mark.parametrize("f", PROGRAMS, ids=[str(i) for i in range(len(PROGRAMS))])
def test_vectorised(f: Callable[..., Any]) -> None:
    xs = jnp.stack([X, 2 * X + 1, -X])
    ours = vmap(lambda x: f(jnp, x))(xs)
    loop = [f(jnp, x) for x in xs]
    if isinstance(ours, list):
        ours, loop = jnp.concatenate(ours, 1), [jnp.concatenate(x, 0) for x in loop]
        ours = jnp.reshape(ours, (3, -1))
        loop = [jnp.ravel(x) for x in loop]
    np.testing.assert_allclose(ours, np.stack(loop), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(jax is None, reason="the oracle is not installed")
@pytest.mark.parametrize("i", [0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 13, 14])
def test_differentiated(i: int) -> None:
    import jax.numpy as jax_numpy

    ours = grad(lambda x: jnp.sum(PROGRAMS[i](jnp, x) * 0.5))(X)
    theirs = jax.grad(lambda x: jax_numpy.sum(PROGRAMS[i](jax_numpy, x) * 0.5))(X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_second_derivatives() -> None:
    hessian = corejax.hessian(lambda x: jnp.sum(jnp.tanh(x) ** 3))(X[0])
    t = np.tanh(X[0])
    expected = (6 * t * (1 - t**2) - 6 * t**3) * (1 - t**2)
    np.testing.assert_allclose(hessian, np.diag(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, c: jnp.add(x, c) * jnp.multiply(c, x),
        lambda x, c: jnp.maximum(x, c) + jnp.where(x > c, c, x),
        lambda x, c: jnp.dot(x, c) + jnp.sum(c) + jnp.sin(c),
        lambda x, c: jnp.concatenate([x, c]) @ jnp.stack([c, c]).reshape(6),
        lambda x, c: jnp.power(c, 2) + x * c,
    ],
)
def test_a_numpy_array_is_one_constant(fun: Callable[..., Any]) -> None:
    c = np.array([5.0, 6.0, 7.0], np.float32)
    for f in (lambda x: fun(x, c), jit(lambda x: fun(x, c)), grad(lambda x: jnp.sum(fun(x, c)))):
        consts = make_jaxpr(f)(np.ones(3, np.float32)).consts
        assert [np.asarray(value).tolist() for value in consts] == [c.tolist()]
