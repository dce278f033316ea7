"""Compiled exponentials of NaNs that the compiler can derive: LLVM leaves XLA's computation of these undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.nn as nn
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Primitive, xla_translations

_NAN_ARRAY = np.array([1, np.nan, 2, 3, 4, 5, 6, np.nan])

PROGRAMS: dict[str, Callable[..., Any]] = {
    "product": lambda x: jnp.exp(x * jnp.nan),
    "sum": lambda x: jnp.exp(jnp.nan + x),
    "choice": lambda x: jnp.exp(jnp.where(x > 3, jnp.nan, x)),
    "computed constant": lambda x: jnp.exp(x * jnp.log(jnp.asarray(-1, x.dtype))),
    "computed in two steps": lambda x: jnp.exp(x * (jnp.sin(jnp.asarray(0, x.dtype)) / jnp.asarray(0, x.dtype))),
    "computed array": lambda x: jnp.exp(x * (jnp.zeros_like(x) / jnp.zeros_like(x))),
    "computed array of another shape": lambda x: jnp.exp(x * jnp.log(jnp.full((2, 4), -1, x.dtype)).reshape(8)),
    "computed array of integers": lambda x: jnp.exp(x * (jnp.zeros(8, int) / jnp.zeros(8, int)).astype(x.dtype)),
    "product with infinity": lambda x: jnp.exp(x * 0 * jnp.inf),
    "quotient by zero": lambda x: jnp.exp(x * 0 / 0),
    "product of indices": lambda x: jnp.exp(x * (lax.iota(x.dtype, 8) * jnp.inf)),
    "mean of nothing": lambda x: jnp.exp(x * jnp.mean(jnp.zeros(0, x.dtype))),
    "complex exponential": lambda x: jnp.exp(x * jnp.nan + 0j).real,
    "complex sine": lambda x: jnp.sin(x * jnp.nan * (1 + 1j)).real,
    "array": lambda x: jnp.exp(x * jnp.asarray(_NAN_ARRAY, x.dtype)),
    "expm1": lambda x: jnp.expm1(x * jnp.nan),
    "exp2": lambda x: jnp.exp2(x * jnp.nan),
    "sinh": lambda x: jnp.sinh(x * jnp.nan),
    "sigmoid": lambda x: nn.sigmoid(x * jnp.nan),
    "softplus": lambda x: nn.softplus(x * jnp.nan),
    "softmax": lambda x: nn.softmax(x * jnp.nan),
    "result of a function": lambda x: jnp.exp(corejax.jit(lambda y: y * jnp.nan)(x)),
    "argument of a function": lambda x: corejax.jit(jnp.exp)(x) * corejax.jit(jnp.exp)(x * jnp.nan),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.exp(c * jnp.nan), x),
    "scan": lambda x: lax.scan(lambda c, _: (jnp.exp(c) * jnp.nan, None), x, None, length=2)[0],
    "branch": lambda x: lax.cond(x[0] > 0, lambda x: jnp.exp(x * jnp.nan), jnp.exp, x),
    "gradient": corejax.grad(lambda x: jnp.exp(x * jnp.nan).sum()),
    "batch": corejax.vmap(lambda x: jnp.exp(x * jnp.nan)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nan_is_where_it_is_eagerly(name: str, dtype: str) -> None:
    x = jnp.arange(1, 9).astype(dtype)
    with np.errstate(all="ignore"):
        eager = np.asarray(PROGRAMS[name](x)).astype(np.float32)
    compiled = np.asarray(corejax.jit(PROGRAMS[name])(x)).astype(np.float32)
    np.testing.assert_array_equal(np.isnan(compiled), np.isnan(eager))


def test_closed_over_nan() -> None:
    nan, x = jnp.float32(np.nan), jnp.arange(1.0, 9.0)
    assert np.isnan(corejax.jit(lambda x: jnp.exp(x + nan))(x)).all()


def test_exponentials_without_constant_nan_are_one_operation() -> None:
    def f(x: Any) -> Any:
        return jnp.exp(x * jnp.sqrt(jnp.float32(2))) * jnp.where(x > 0, x, jnp.nan)

    assert corejax.jit(f).lower(jnp.ones(8)).as_text().count("stablehlo.select") == 1


def test_written_updates_are_not_copied_for_a_common_nan() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * jnp.nan).at[1:3].set(y[:2] * jnp.nan)

    assert "call @identity" not in corejax.jit(f).lower(jnp.ones(8), jnp.ones(8)).as_text()


def test_what_has_no_impl_rule_compiles_with_literals() -> None:
    twice = Primitive("known_nan.twice", abstract_eval=lambda x: x, tags=("elementwise",))
    xla_translations.register(twice, lambda ctx, avals, vals: ctx.op("add", *vals, *vals, out=avals[0]))
    assert float(corejax.jit(lambda x: x * twice.bind(np.float32(3)))(jnp.float32(2))) == 12
