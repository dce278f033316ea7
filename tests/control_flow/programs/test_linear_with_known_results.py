"""Transposes of programs whose loops and calls give, beside what is linear, results by which the rest is multiplied."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import dce_jaxpr, get_aval, inline_closed, jvp_jaxpr, stage_closed, transpose_jaxpr

X = np.array([0.5, -1.0, 2.0], np.float32)
CT = np.array([1.0, 2.0, -3.0], np.float32)


def counted(x):
    (i, y), ks = lax.scan(lambda c, _: ((c[0] + 1.0, c[1] * c[0]), c[0]), (1.0, x), None, length=3)
    return y * i * ks


def looped(x):
    i, y = lax.fori_loop(0, 3, lambda _, c: (c[0] + 1.0, c[1] * 2.0), (1.0, x))
    return y * i


def jitted(x):
    k, y = cj.jit(lambda a, x: (a + 1, x * 3.0))(jnp.int32(0), x)
    return lax.dynamic_slice(y, (k,), (2,)).sum() + y


def chosen(x):
    k, y = lax.cond(True, lambda x: (jnp.float32(2.0), x), lambda x: (jnp.float32(3.0), 2 * x), x)
    return k * y


def checkpointed(x):
    k, y = cj.checkpoint(lambda a, x: (jnp.sin(a), x * a))(2.0, x)
    return k * y


def nested(x):
    return lax.scan(lambda c, k: (jitted(c) + counted(c) * k, None), x, jnp.arange(2.0))[0]


@pytest.mark.parametrize("f", [counted, looped, jitted, chosen, checkpointed, nested])
def test_linear_transpose(f):
    matrix = np.asarray(cj.vmap(f)(np.eye(3, dtype=np.float32)))  # its rows are images of unit vectors
    pull = cj.linear_transpose(f, X)
    np.testing.assert_allclose(pull(CT)[0], matrix @ CT, rtol=1e-5)
    np.testing.assert_allclose(cj.linear_transpose(lambda ct: pull(ct)[0], CT)(X)[0], X @ matrix, rtol=1e-5)


def test_what_is_not_linear_is_refused_still():
    def squares(x):
        i, y = lax.fori_loop(0, 3, lambda _, c: (c[0] + 1.0, c[1] * 2.0), (1.0, x))
        return y * i * x

    with pytest.raises(cj.errors.NotLinearError, match="multiplied by another such value"):
        cj.linear_transpose(squares, X)(CT)


def test_derivatives_of_a_transposed_scan_are_transposed():
    """Its residuals come from a scan that pushes their tangents too."""

    def tangent(program, nonzeros):
        count = len(program.out_avals)
        pushed, nonzeros_out = jvp_jaxpr(program, nonzeros)
        return dce_jaxpr(pushed, [False] * count + [True] * sum(nonzeros_out), instantiate=True)[0]

    aval = get_aval(jnp.asarray(X))
    program = stage_closed(lambda x: [lax.fori_loop(0, 2, lambda _, c: jnp.sin(c), x)], [aval])
    back, _ = transpose_jaxpr(tangent(program, [True]), [False, True], [True])
    again, _ = transpose_jaxpr(tangent(back, [True, False]), [False, False, True], [True])
    (found,) = inline_closed(again, [X, CT, np.ones(3, np.float32)])
    expected = cj.grad(cj.grad(lambda x, c: jnp.sin(jnp.sin(x)) * c))
    np.testing.assert_allclose(found, [expected(x, c) for x, c in zip(X, CT, strict=True)], rtol=1e-5)
