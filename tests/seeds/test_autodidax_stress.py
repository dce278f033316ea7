"""Autodidax's closing compositionality stress test, and its function through every nesting of transformations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from corejax import eval_jaxpr, grad, jit, jvp, lax, make_jaxpr, vmap
from corejax.extend.programs import check_jaxpr

pytest.importorskip("corejax_xla_backend")

pytestmark = pytest.mark.usefixtures("wide")

sin = lax.sin


# from fun_with_nested_calls_2
def foo(x: Any) -> Any:
    @jit
    def bar(y: Any) -> Any:
        def baz(w: Any) -> Any:
            q = jit(lambda x: y)(x)
            q = q + jit(lambda: y)()
            q = q + jit(lambda y: w + y)(y)
            q = jit(lambda w: jit(sin)(x) * y)(1.0) + q
            return q

        p, t = jvp(baz, (x + 1.0,), (y,))
        return t + (x * p)

    return bar(x)


def value(x: Any) -> Any:
    """`foo` on paper: p = 4x + 1 + x sin x, t = x."""
    return x + x * (4 * x + 1 + x * np.sin(x))


def first(x: Any) -> Any:
    return 2 + 8 * x + 2 * x * np.sin(x) + x**2 * np.cos(x)


def second(x: Any) -> Any:
    return 8 + 2 * np.sin(x) + 4 * x * np.cos(x) - x**2 * np.sin(x)


def third(x: Any) -> Any:
    return 6 * np.cos(x) - 6 * x * np.sin(x) - x**2 * np.cos(x)


DERIVATIVES = (value, first, second, third)


def assert_allclose(*vals: Any) -> None:
    for v1, v2 in pairwise(vals):
        np.testing.assert_allclose(v1, v2, rtol=1e-12)


def test_values() -> None:
    f = foo
    ans1 = f(3.0)
    ans2 = jit(f)(3.0)
    ans3, _ = jvp(f, (3.0,), (5.0,))
    ans4, _ = jvp(jit(f), (3.0,), (5.0,))
    assert_allclose(ans1, ans2, ans3, ans4, value(3.0))


def test_first_derivatives() -> None:
    f = foo
    deriv1 = grad(f)(3.0)
    deriv2 = grad(jit(f))(3.0)
    deriv3 = jit(grad(jit(f)))(3.0)
    _, deriv4 = jvp(f, (3.0,), (1.0,))
    _, deriv5 = jvp(jit(f), (3.0,), (1.0,))
    assert_allclose(deriv1, deriv2, deriv3, deriv4, deriv5, first(3.0))


def test_second_derivatives() -> None:
    f = foo
    hess1 = grad(grad(f))(3.0)
    hess2 = grad(grad(jit(f)))(3.0)
    hess3 = grad(jit(grad(f)))(3.0)
    hess4 = jit(grad(grad(f)))(3.0)
    _, hess5 = jvp(grad(f), (3.0,), (1.0,))
    _, hess6 = jvp(jit(grad(f)), (3.0,), (1.0,))
    _, hess7 = jvp(jit(grad(f)), (3.0,), (1.0,))
    assert_allclose(hess1, hess2, hess3, hess4, hess5, hess6, hess7, second(3.0))


# -- every nesting ---------------------------------------------------------------------------------

Scalar = Callable[[Any], Any]
TRANSFORMS: dict[str, Callable[[Scalar], Scalar]] = {
    "jit": jit,
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "grad": grad,
    # One element of a batch of three, so that the function stays one of scalars.
    "vmap": lambda f: lambda x: _middle(vmap(f)(x + np.array([-1.0, 0.0, 1.0]))),
}


def _middle(x: Any) -> Any:
    return lax.reduce_sum(x * np.array([0.0, 1.0, 0.0]), (0,))


Word = tuple[str, ...]


def words(*lengths: int) -> list[Word]:
    return [word for length in lengths for word in product(TRANSFORMS, repeat=length)]


# All words of up to three transformations, and those of four in which each occurs once.
WORDS = [*words(0, 1, 2, 3), *(word for word in words(4) if len(set(word)) == 4)]


def compose(word: Word, f: Scalar) -> Scalar:
    """`word[0]` outermost."""
    for name in reversed(word):
        f = TRANSFORMS[name](f)
    return f


def order(word: Word) -> int:
    return sum(name in ("jvp", "grad") for name in word)


# Words of two and what they are made of; of the long ones every fourth, and all in `make test-slow`.
QUICK = {*words(0, 1, 2), *WORDS[::4]}


@pytest.mark.parametrize(
    "word",
    [pytest.param(word, marks=[pytest.mark.slow] * (word not in QUICK)) for word in WORDS],
    ids=lambda word: "-".join(word) or "itself",
)
def test_every_nesting(word: Word) -> None:
    out = compose(word, foo)(3.0)
    assert out.shape == () and out.dtype == np.float64
    np.testing.assert_allclose(out, DERIVATIVES[order(word)](3.0), rtol=1e-12)


@pytest.mark.parametrize("word", words(2), ids="-".join)
def test_every_nesting_is_traceable(word: Word) -> None:
    closed = make_jaxpr(compose(word, foo))(3.0)
    check_jaxpr(closed)
    (out,) = eval_jaxpr(closed.jaxpr, closed.consts, [3.0])
    np.testing.assert_allclose(out, DERIVATIVES[order(word)](3.0), rtol=1e-12)
