"""The real jax as oracle: one program, run with corejax over the toys and with jax over jax.numpy."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import tree
from tests.kernel import toys

Program = Callable[[Any, Any], Any]


def jax_and_functions() -> tuple[Any, Any]:
    """jax, and its functions under the toys' names."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    functions = SimpleNamespace(
        add=jnp.add, sub=jnp.subtract, mul=jnp.multiply, greater=jnp.greater, neg=jnp.negative, sin=jnp.sin,
        cos=jnp.cos, real=jnp.real, imag=jnp.imag, complex_=jax.lax.complex, sum_=jnp.sum, reshape=jnp.reshape,
        transpose=jnp.transpose, astype=lambda x, dtype: jnp.asarray(x).astype(dtype),
        dot=lambda x, y: jnp.sum(x * y, -1), call=jax.jit,
    )  # fmt: skip
    return jax, functions


def ours(program: Program) -> Any:
    """What corejax gives."""
    with toys.installed():
        return program(corejax, toys)


def assert_same(got: Any, wanted: Any, rtol: float = 2e-5) -> None:
    """Equal key paths, shapes and dtypes, close values; leaves that are not arrays are equal."""
    left, right = tree.tree_leaves_with_path(got), tree.tree_leaves_with_path(wanted)
    assert [tree.keystr(path) for path, _ in left] == [tree.keystr(path) for path, _ in right]
    for (path, x), (_, y) in zip(left, right, strict=True):
        where = tree.keystr(path)
        if isinstance(y, str):
            assert x == y, where
            continue
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape, where
        if y.dtype.names or x.dtype.names:
            assert x.dtype == y.dtype, where
        else:
            if not isinstance(y, float):
                assert x.dtype == y.dtype or not np.issubdtype(y.dtype, np.floating) or y.dtype == np.float64, where
            np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-5, err_msg=where)


def assert_as_jax(program: Program) -> None:
    """Run a program with both and compare."""
    jax, functions = jax_and_functions()
    assert_same(ours(program), program(jax, functions))
