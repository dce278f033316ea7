"""Functions whose eager calls become NumPy's ufunc when they come again: bit by bit what they are made of."""

from __future__ import annotations

import itertools
from inspect import isfunction
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend import config, dtypes
from corejax_eager import cache
from corejax_eager.specialise import operations
from corejax_numpy import numpy as namespace
from tests.signatures import names_in

DTYPES = sorted(
    names_in(
        "float16 float32 float64 bfloat16 float8_e4m3fn float8_e5m2fnuz bool int8 int16 int32 int64 uint8 uint16 "
        "uint32 uint64 complex64"
    )
)


def values(dtype: str) -> np.ndarray:
    """Special values, and ordinary ones."""
    numbers = np.random.default_rng(0)
    if dtype == "bool":
        return np.array([True, False])
    if jnp.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        few = [0, 1, 2, 3, 5, 12, info.max, info.min, info.max - 1, 18, 31, 32, 33, 64]
        return np.concatenate([np.array(few, dtype), numbers.integers(0, 100, 30).astype(dtype)])
    info = jnp.finfo("float32" if dtype == "complex64" else dtype)
    few = [0.0, 1, 0.5, 3, 7.5, np.inf, np.nan, float(info.tiny), float(info.tiny) / 4, float(info.max), 1e4, 1e-4]
    wide = numbers.standard_normal(60) * np.exp(5 * numbers.standard_normal(60))
    with np.errstate(all="ignore"):
        return np.concatenate([few, np.negative(few), wide]).astype(dtype)


def bits(x: Any) -> bytes:
    """Of an array, all NaNs alike."""
    x = np.asarray(x)
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).tobytes() if dtypes.is_float(x.dtype) else x.tobytes()


@pytest.mark.sampled
@pytest.mark.parametrize("name", [name.partition(":")[0] for name in namespace._UFUNCS.split()])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_and_types_are_those_of_the_function(name: str, dtype: str) -> None:
    f, given = getattr(jnp, name), values(dtype)
    if getattr(np, name).nin == 1:
        args = [jnp.asarray(given)]
    else:
        pairs = [np.array(side) for side in zip(*itertools.product(given, given), strict=True)]
        args = [jnp.asarray(x.astype(dtype)) for x in pairs]
        if name == "ldexp":
            args[1] = jnp.asarray(np.resize(np.int32([0, 1, -1, 3, -30, 40, -200, 200, 2000, -2000]), len(pairs[0])))
    try:
        wanted = f.__wrapped__(*args)
    except (TypeError, ValueError) as error:
        for _ in range(4):
            with pytest.raises(type(error)):
                f(*args)
        return
    for _ in range(4):
        got = f(*args)
        assert corejax.tree.structure(got) == corejax.tree.structure(wanted)
        for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(wanted), strict=True):
            assert a.aval is b.aval
            assert bits(a) == bits(b)
            assert not np.asarray(a).flags.writeable


def test_scalars_broadcasting_and_weak_types() -> None:
    x = jnp.asarray(np.float32([1.5, -2.0]))
    for args in ((x[0], x[1]), (x, x[:, None]), (x[:0], x[:0]), (x, jnp.asarray(2.0)), (x, -1.0)):
        for _ in range(4):
            got, wanted = jnp.copysign(*args), jnp.copysign.__wrapped__(*args)
            assert got.aval is wanted.aval
            np.testing.assert_array_equal(got, wanted)


def test_a_ufunc_is_what_runs_unless_values_are_looked_at() -> None:
    x = jnp.asarray(np.float32([1.5, -2.0, 0.0]))

    def recorded() -> set[str]:
        return {p.__name__ for programs in cache._filled - {operations} for p in programs.values() if isfunction(p)}

    corejax.clear_caches()
    for _ in range(3):
        jnp.frexp(x)
    assert recorded() == {"program"}
    corejax.clear_caches()
    with config.override(debug_nans=True):
        for _ in range(3):
            jnp.frexp(x)
        assert recorded() == {"by_equations"}
    assert "select" in str(corejax.make_jaxpr(jnp.frexp)(x))
