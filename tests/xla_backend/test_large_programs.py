"""Eager functions of several elementwise operations on large arrays are one compiled program, from the first call."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.errors import CorejaxError

N = 1 << 18  # elements from which on an array is large
X = np.random.default_rng(0).standard_normal(N).astype(np.float32)
X[:5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
FUNCTIONS = {
    "nan_to_num": lambda x: jnp.nan_to_num(x),
    "hypot": lambda x: jnp.hypot(x, 2 * x),
    "isclose": lambda x: jnp.isclose(x, x, equal_nan=True),
    "floor_divide": lambda x: x // 0.7,
    "remainder": lambda x: x % 0.7,
    "logaddexp": lambda x: jnp.logaddexp(x, 1.5),
    "sinc": lambda x: jnp.sinc(x),
    "softplus": lambda x: corejax.nn.softplus(x),
    "divmod": lambda x: divmod(x, 0.7)[1],
    "logpdf": lambda x: corejax.scipy.stats.norm.logpdf(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_small_arrays_and_the_same_each_time(name: str) -> None:
    f = FUNCTIONS[name]
    first = f(jnp.asarray(X))
    parts = jnp.concatenate([f(part) for part in jnp.split(jnp.asarray(X), 64)])
    assert first.aval == parts.aval
    np.testing.assert_allclose(first, parts, rtol=1e-5, atol=1e-6)
    for _ in range(3):
        np.testing.assert_array_equal(f(jnp.asarray(X)), first)


@pytest.mark.engine
def test_it_is_compiled_once_under_its_name(caplog: pytest.LogCaptureFixture) -> None:
    corejax.clear_caches()
    x = jnp.asarray(X)
    with corejax.config.override(log_compiles=True), caplog.at_level(logging.WARNING):
        for _ in range(3):
            jnp.nan_to_num(x)
            jnp.nan_to_num(x[:100])
    assert sum("nan_to_num" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "int32", "complex64", "bool"])
def test_other_dtypes(dtype: str) -> None:
    x = jnp.asarray(np.nan_to_num(X, posinf=3, neginf=-3)).astype(dtype)
    whole = jnp.isclose(x, x)
    assert whole.dtype == bool and whole.all()
    np.testing.assert_array_equal(jnp.nan_to_num(x), x)
    assert jnp.nan_to_num(x).aval == jnp.nan_to_num(x[:9]).aval.update(shape=x.shape)


def test_errors_are_the_functions_own() -> None:
    x = jnp.asarray(X)
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match="hypot"):
            jnp.hypot(x.astype("complex64"), x)
        with pytest.raises((TypeError, ValueError, CorejaxError)):
            jnp.isclose(x, x[:7])


def test_without_compiling() -> None:
    x = jnp.asarray(X)
    compiled = jnp.hypot(x, x)
    with corejax.disable_jit():
        np.testing.assert_allclose(jnp.hypot(x, x), compiled, rtol=1e-6)


def test_values_are_checked_at_the_operation() -> None:
    x = jnp.zeros(N, np.float32)
    for _ in range(3):
        jnp.floor_divide(x, x)
        with corejax.debug_nans(True), pytest.raises(FloatingPointError, match="in div"):
            jnp.floor_divide(x, x)


def test_under_transformations() -> None:
    x = jnp.asarray(np.abs(X[5:] + 3)[: N - 64]).reshape(64, -1)
    large = jnp.concatenate([x, x[:1]])  # 65 rows

    def loss(x: Any) -> Any:
        return jnp.sum(jnp.logaddexp(x, 0.5) + jnp.hypot(x, 1.0))

    np.testing.assert_allclose(corejax.grad(loss)(large)[:64], corejax.grad(loss)(x), rtol=1e-5)
    np.testing.assert_allclose(corejax.vmap(jnp.nan_to_num)(large), large)
    np.testing.assert_allclose(corejax.jit(loss)(large), loss(large), rtol=1e-4)
