"""Eager calls that come again give what the first one gave: bits, types, memory that nobody writes to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import nn
from tests.signatures import names_in

pytestmark = pytest.mark.sampled
SLOW = "float16 float64 int4 bool int32 uint8 uint64 complex64"
DTYPES = ["float32", "bfloat16", "int8", *(pytest.param(d, marks=pytest.mark.slow) for d in SLOW.split())]
MANY = 7  # calls: run, recorded, step by step, written out

UNARY: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(jnp, name)
        for name in sorted(
            names_in(
                "sum max min prod any all mean var std argmax argmin cumsum cumprod median nanmean nanmax nan_to_num "
                "round sinc diff gradient trapezoid unwrap cov sort argsort fabs sign sin exp abs isfinite logical_not "
                "floor ptp flip count_nonzero diagonal tril vander ravel squeeze atleast_2d histogram"
            )
        )
    },
    "rolled": lambda x: jnp.roll(x, 2),
    "tiled": lambda x: jnp.tile(x, (2, 3)),
    "repeated": lambda x: jnp.repeat(x, 3),
    "halves": lambda x: jnp.array_split(x, 2),
    "stacked": lambda x: jnp.stack([x, x[::-1] if x.ndim else x]),
    "joined": lambda x: jnp.concatenate([jnp.ravel(x)] * 2),
    "clipped": lambda x: jnp.clip(x, 0, 1),
    "quantile": lambda x: jnp.quantile(x, 0.3),
    "maximum over an axis": lambda x: jnp.max(x, axis=0, keepdims=True),
    "sums over axes": lambda x: (jnp.sum(x, axis=-1), jnp.sum(x.T, axis=-1), jnp.sum(x[..., ::2])),
    "all of a mask": lambda x: (jnp.all(x == x), jnp.any(x != x), jnp.any(x > 0, axis=0)),
    "chosen": lambda x: (jnp.where(x > 0, x, 0), jnp.where(x > 0, 1, x), jnp.where(True, x, -x)),
    "converted": lambda x: (x.astype("float32"), x.astype("int32"), x.astype(bool), x.astype("complex64")),
    "powers": lambda x: (x**1, x**2, x**5, x**0),
    "parts": lambda x: (x[0], x[..., -1], x[None], x[::-1], x[1:, ...], x.T),
    "changed": lambda x: (x.at[0].set(1), x.at[jnp.array([0, -1])].add(1), x.at[::2].max(0)),
    "taken": lambda x: (x[jnp.array([0, 1, -1])], jnp.take(x, jnp.array([0, 9]))),
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "logsumexp": nn.logsumexp,
    "standardize": nn.standardize,
    "relu": nn.relu,
    "sigmoid": nn.sigmoid,
    "softplus": nn.softplus,
    "elu": nn.elu,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: getattr(jnp, name)
        for name in sorted(
            names_in(
                "add subtract multiply divide floor_divide mod power maximum minimum equal less arctan2 hypot "
                "logaddexp isclose outer dot matmul inner kron vdot convolve polyval interp searchsorted isin gcd lcm "
                "allclose logical_and bitwise_and nextafter copysign fmod cross"
            )
        )
    },
    "@": lambda x, y: x @ y,
    "+": lambda x, y: x + y,
    "x * 2": lambda x, y: x * 2,
    "<": lambda x, y: x < y,
}


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary numbers and special ones."""
    dtype = jnp.dtype(dtype)
    size = int(np.prod(shape))
    numbers = np.random.default_rng(size).integers(-8, 8, size).astype(np.float64)
    if jnp.issubdtype(dtype, np.inexact):
        numbers = numbers * 0.375
        numbers[1::5], numbers[3::7], numbers[4::9] = np.nan, -0.0, np.inf
    elif dtype.kind in "bu":
        numbers = abs(numbers)
    with np.errstate(all="ignore"):
        return numbers.reshape(shape).astype(dtype)


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """Types and bits of results, or the error."""
    try:
        out = f(*args)
    except Exception as error:
        return type(error), str(error)
    leaves = corejax.tree.leaves(out)
    assert not any(np.asarray(leaf).flags.writeable for leaf in leaves)
    return str(corejax.tree.structure(out)), [(leaf.aval, np.asarray(leaf).tobytes()) for leaf in leaves]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_of_one(name: str, dtype: str) -> None:
    f = UNARY[name]
    for shape in [(), (1,), (5,), (0, 2), (3, 4), (2, 3, 2)]:
        for x in (jnp.asarray(values(dtype, shape)), jnp.asarray(values(dtype, shape[::-1])).T):
            wanted = outcome(f, x)
            for _ in range(MANY):
                assert outcome(f, x) == wanted, (shape, np.asarray(x))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_of_two(name: str, dtype: str) -> None:
    f = BINARY[name]
    shapes = [(), (4,), (4, 4), (1, 4), (0,)]
    for first, second in itertools.product(shapes, shapes):
        x, y = (
            jnp.asarray(values(dtype, first)),
            jnp.asarray(values(dtype, second)[::-1] if second else values(dtype, ())),
        )
        wanted = outcome(f, x, y)
        for _ in range(MANY):
            assert outcome(f, x, y) == wanted, (first, second)


def test_more_axes_than_numpy_broadcasts_shapes_of() -> None:
    x = jnp.ones((1,) * 34, "int64")
    for _ in range(MANY):
        assert np.array_equal(x + 1000, np.full(x.shape, 1001)) and jnp.hypot(x, 0.0).shape == x.shape
