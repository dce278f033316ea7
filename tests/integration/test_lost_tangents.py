"""A value that carries a tangent converts to a Python bool or int and to nothing else."""

from __future__ import annotations

import array
import cmath
import inspect
import math
import pickle

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.errors import ConcretizationTypeError, TracerArrayConversionError

X = np.float32(1.25)
DIFFERENTIATE = {
    "grad": lambda f: cj.grad(f)(X),
    "value_and_grad": lambda f: cj.value_and_grad(f)(X),
    "jvp": lambda f: cj.jvp(f, (X,), (X,)),
    "jacfwd": lambda f: cj.jacfwd(f)(X),
    "jacrev": lambda f: cj.jacrev(f)(X),
    "linearize": lambda f: cj.linearize(f, X),
    "vjp": lambda f: cj.vjp(f, X),
    "grad of grad": lambda f: cj.grad(cj.grad(f))(X),
    "jvp of grad": lambda f: cj.jvp(cj.grad(f), (X,), (X,)),
    "jit inside": lambda f: cj.grad(lambda x: cj.jit(lambda y: f(x) * y)(X))(X),
    "vmap inside": lambda f: cj.grad(lambda x: jnp.sum(cj.vmap(lambda y: f(x) * y)(jnp.ones(2))))(X),
    "scan inside": lambda f: cj.grad(lambda x: lax.scan(lambda c, _: (c + f(x), c), X, None, length=2)[0])(X),
    "custom_jvp inside": lambda f: cj.grad(lambda x: _squared(x) * f(x))(X),
}


@cj.custom_jvp
def _squared(x):
    return x * x


_squared.defjvp(lambda primals, tangents: (primals[0] ** 2, 2 * primals[0] * tangents[0]))

LOSSES = {
    "np.sin": np.sin,
    "np.dot": lambda x: np.dot(x, x),
    "np.linalg.norm": lambda x: np.linalg.norm(x[None]),
    "np.asarray": lambda x: np.asarray(x) * 1.0,
    "np.array of a list": lambda x: np.array([x, x]).sum(),
    "np.float32": lambda x: np.float32(x) * x,
    "np.multiply with out": lambda x: np.multiply(x, 2.0, out=np.zeros((), np.float32)),
    "np.add.reduce": lambda x: np.add.reduce(x[None]),
    "np.where": lambda x: np.where(True, x, 0.0),
    "np.testing": lambda x: np.testing.assert_allclose(x, 1.25) or x,
    "element of a NumPy array": lambda x: np.zeros(1, np.float32).__setitem__(0, x) or x,
    "float": lambda x: float(x) * x,
    "complex": lambda x: complex(x).real * x,
    "math.sin": math.sin,
    "cmath.sin": lambda x: cmath.sin(x).real,
    "item": lambda x: x.item() * x,
    "tolist": lambda x: x.tolist() * x,
    "percent": lambda x: ("%f" % x) and x,  # noqa: UP031
    "array.array": lambda x: array.array("f", [x])[0] * x,
    "jnp.arange": lambda x: jnp.arange(x, 3.0).sum(),
    "derived value": lambda x: float(jnp.sin(x) * 2),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("how", ["grad", "jvp", "vjp"])
def test_what_would_lose_a_tangent_is_an_error(name, how):
    with pytest.raises((ConcretizationTypeError, ValueError)) as info:
        DIFFERENTIATE[how](LOSSES[name])
    error = info.value if isinstance(info.value, ConcretizationTypeError) else info.value.__cause__  # NumPy's own
    assert "its derivative would be lost" in str(error)


@pytest.mark.parametrize("name", ["np.sin", "float", "item", "math.sin"])
@pytest.mark.parametrize("how", DIFFERENTIATE)
def test_under_every_derivative(name, how):
    with pytest.raises(ConcretizationTypeError, match="its derivative would be lost"):
        DIFFERENTIATE[how](LOSSES[name])


def test_the_error_says_what_is_differentiated_and_where():
    def height(x):
        y = jnp.cos(x)
        return np.sin(y)

    lines, start = inspect.getsourcelines(height)
    for transform in ("grad", "linearize", "jacfwd"):
        with pytest.raises(TracerArrayConversionError) as info:
            DIFFERENTIATE[transform](height)
        text = str(info.value)
        shown = "jvp" if transform == "jacfwd" else transform
        assert f"by {shown} of the function height at {__file__}:{start}" in text
        assert f"{__file__}:{start + len(lines) - 1}" in text
        assert "corejax.numpy" in text and "stop_gradient" in text and "jnp.sin" in text


def test_pickling_a_tracer_is_an_error():
    with pytest.raises(TypeError, match="cannot pickle JVPTracer"):
        cj.grad(lambda x: pickle.loads(pickle.dumps(x)))(X)


# -- what goes on working: it is constant piecewise, or has no tangent -------------------------------------------


def power(x):
    """x ** 3 by control flow."""
    y = x
    for _ in range(int(x) + 1):
        y = y * x if x > 0 else -y
    return y if x else x * 0


@pytest.mark.parametrize("how", ["grad", "jacfwd", "jacrev"])
def test_control_flow_is_constant_piecewise(how):
    np.testing.assert_allclose(DIFFERENTIATE[how](power), 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(cj.grad(cj.grad(power))(X), 6 * X, rtol=1e-6)
    np.testing.assert_allclose(cj.grad(lambda x: x * math.floor(x * 10))(X), 12.0)
    np.testing.assert_allclose(cj.grad(lambda x: x * math.ceil(x * 10))(X), 13.0)
    np.testing.assert_allclose(cj.grad(lambda x: x * math.trunc(-x * 10))(X), -12.0)
    np.testing.assert_allclose(cj.grad(lambda x: max(x, 0.5 * x) * [1.0, 2.0][bool(x > 1)])(X), 2.0)
    np.testing.assert_allclose(cj.grad(lambda x: jnp.ones(4)[: int(x * 2)].sum() * x)(X), 2.0)


def test_what_has_no_tangent_converts():
    def f(x):
        n = (x * 4).astype("int32")
        assert np.asarray(n) == 5 and n.item() == 5 and [0] * 6 and list(range(9))[n] == 5 and float(n) == 5.0
        assert np.asarray(x > 1).item() is True and (x > 1).tolist() is True and not np.any(np.asarray(x < 0))
        frozen = lax.stop_gradient(x)
        assert isinstance(float(frozen), float) and math.sin(frozen) and np.sin(np.asarray(frozen)).shape == ()
        return x * frozen.item() * np.sin(frozen)

    for how in ("grad", "jacfwd", "jacrev"):
        np.testing.assert_allclose(DIFFERENTIATE[how](f), X * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(cj.grad(lambda x, n: x * n.item() * np.asarray(n))(X, jnp.int32(3)), 9.0)
    np.testing.assert_allclose(cj.grad(lambda x, y: x * float(y) * np.sin(y))(X, X), X * np.sin(X), rtol=1e-6)
    # an outer derivative's constant inside an inner derivative
    np.testing.assert_allclose(cj.grad(lambda x: cj.grad(lambda y: y * x)(2.0))(X), 1.0)


def test_numpy_functions_that_call_methods_and_operators_work():
    assert cj.grad(lambda x: np.max(jnp.stack([x, x * 2])))(X) == 2.0

    def added(x):
        total = np.ones((), np.float32)
        total += x  # not in place: NumPy leaves it to the tracer
        return total * x

    np.testing.assert_allclose(cj.grad(added)(X), 1 + 2 * X)


def test_printing_works():
    seen = []
    cj.grad(lambda x: seen.append((f"{x}", str(x), repr(x))) or x)(X)
    assert all("1.25" in text for text in seen[0])


def test_arrays_round_without_going_through_a_float():
    n = 2**53 + 1
    x = jnp.asarray(np.int64(n))
    assert math.floor(x) == math.ceil(x) == math.trunc(x) == n and math.floor(jnp.float32(-1.5)) == -2
    with pytest.raises(TypeError, match="size 1"):
        math.floor(jnp.ones(3))
