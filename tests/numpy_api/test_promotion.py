"""Promotion of every pair of dtypes and weak types, in every mode of widths, standard and strict: JAX's."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import config, dtypes
from corejax.dtypes import TypePromotionError

jax = pytest.importorskip("jax")

ALL = list(dtypes.LONG_NAMES.values())
WIDE = [d for d in ALL if d.name in ("int64", "uint64", "float64", "complex128")]
NARROW = [d for d in ALL if d not in WIDE]
WEAK = [int, float, complex]
MODES = {"32": ({}, False, NARROW), "x64_compat": ({"x64_compat": True}, False, ALL)}
MODES["64"] = ({"default_dtype_bits": 64}, True, ALL)


def ours(pair: tuple[Any, Any]) -> Any:
    """Dtype of an operation on a pair of dtypes and Python types; None where there is none."""
    avals = [x if isinstance(x, type) else corejax.ShapedArray((), dtypes.canonicalize_dtype(x)) for x in pair]
    try:
        dtype, weak = dtypes.result_type(*avals, return_weak_type_flag=True)
    except TypePromotionError:
        return None
    return dtype, weak


def theirs(pair: tuple[Any, Any]) -> Any:
    nodes = [x if isinstance(x, type) else jax.dtypes.canonicalize_dtype(x) for x in pair]
    try:
        return jax._src.dtypes.result_type(*nodes, return_weak_type_flag=True)
    except jax.dtypes.TypePromotionError:
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strictness", ["standard", "strict"])
@pytest.mark.parametrize("mode", MODES)
def test_every_pair(mode: str, strictness: str) -> None:
    settings, x64, these = MODES[mode]
    with config.override(numpy_dtype_promotion=strictness, **settings):
        with jax.enable_x64(x64), jax.numpy_dtype_promotion(strictness):
            for pair in itertools.combinations_with_replacement([*these, *WEAK], 2):
                names = {getattr(x, "name", "") for x in pair}
                if mode == "32" and "uint32" in names and names & {"int8", "int16", "int32"}:
                    continue  # int64: 64-bit types need no switch
                assert ours(pair) == theirs(pair), pair
                assert ours(pair) == ours(pair[::-1])


def test_strict_promotion_of_operations() -> None:
    x, i, b = jnp.ones(3), jnp.arange(3), jnp.ones(3, bool)
    with corejax.numpy_dtype_promotion("strict"):
        assert (x * 2).dtype == (2.0 * x).dtype == jnp.maximum(x, 1).dtype == np.float32
        assert (i + 1).dtype == np.int32
        for mixed in (
            lambda: x + i,
            lambda: jnp.add(i, b),
            lambda: i * 2.5,
            lambda: x + True,
            lambda: jnp.where(b, x, i),
        ):
            with pytest.raises(TypePromotionError, match="strict"):
                mixed()
    assert (x + True + i).dtype == np.float32


def test_jit_takes_promotion_into_account() -> None:
    f = corejax.jit(lambda x, y: x + y)
    x, y = jnp.ones((2, 3)), jnp.arange(3)
    assert f(x, y).shape == (2, 3)
    with corejax.numpy_dtype_promotion("strict"), pytest.raises(TypePromotionError, match="strict"):
        f(x, y)
    with corejax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match=r"add: shapes \(3,\) and \(2, 3\)"):
        f(x, y)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x + y,
        lambda x, y: jnp.maximum(x, y),
        lambda x, y: jnp.where(x > 0, x, y),
        lambda x, y: jnp.vectorize(lambda a, b: a * b)(x, y),
        lambda x, y: jnp.arctan2(x, y),
    ],
)
def test_rank_promotion(call: Any) -> None:
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    with corejax.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="differ in rank"):
            call(x, y)
        call(x, x)
        call(x, 2.0), call(x, jnp.float32(2))
        call(x, y[None])  # one axis of size 1 is no rank
    with corejax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="differ in rank") as caught:
        call(x, y)
    assert caught[0].filename == __file__
    assert call(x, y).shape == (2, 3)


def test_each_line_is_warned_of_once() -> None:
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    with corejax.numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            x + y
            corejax.jit(lambda x, y: x + y)(x, y)
    lines = [w.lineno for w in caught]
    assert lines == [lines[0], lines[0] + 1]


def test_names_of_settings() -> None:
    with corejax.enable_x64():
        assert config.enable_x64 and config.default_dtype_bits == 64 and jnp.asarray(1.0).dtype == np.float64
        with corejax.enable_x64(False):
            assert jnp.asarray(1.0).dtype == np.float32
    config.update("jax_enable_x64", True)
    assert config.default_dtype_bits == 64
    config.update("enable_x64", False)
    assert config.default_dtype_bits == 32 and not config.enable_x64
    config.enable_x64 = True
    assert jnp.asarray(1).dtype == np.int64
    config.enable_x64 = False
    with config.override(jax_enable_checks=False, enable_x64=True):
        assert not config.check_jaxprs and config.enable_x64
    assert config.check_jaxprs and not config.enable_x64
    with pytest.raises(ValueError, match="standard or strict, got 'loose'"):
        config.update("numpy_dtype_promotion", "loose")
    with pytest.raises(ValueError, match="allow, warn or raise"):
        config.numpy_rank_promotion = "sometimes"
    with pytest.raises(AttributeError, match="no setting named 'enable_x65'"):
        config.update("jax_enable_x65", True)


def test_settings_of_the_environment() -> None:
    program = "from corejax import config; print(config.default_dtype_bits, config.numpy_rank_promotion)"
    variables = {"COREJAX_ENABLE_X64": "1", "COREJAX_NUMPY_RANK_PROMOTION": "raise"}
    out = subprocess.run([sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True)
    assert out.stdout.split() == ["64", "raise"], out.stderr


@corejax.numpy_dtype_promotion("strict")
def test_context_managers_are_decorators() -> None:
    assert config.numpy_dtype_promotion == "strict"


def test_small_types_yield_to_nothing() -> None:
    with pytest.raises(TypePromotionError, match="types this narrow"):
        jnp.ones(2, ml_dtypes.float8_e5m2) + jnp.ones(2)


def test_none_is_the_default_floating_dtype() -> None:
    assert jnp.result_type(None) == jnp.result_type(None, np.int8) == np.float32
    with config.override(enable_x64=True):
        assert jnp.result_type(None) == np.float64
