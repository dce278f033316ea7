"""Elementwise functions and reductions, over every dtype, weak and strong, in the three modes of widths.

Dtype and weak type are jax's, and a trace has those of the eager result. docs/differences.md has what is not so.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.nn
import corejax.numpy as jnp
from corejax import config
from tests.numpy_api.oracle import outputs, types

jax = pytest.importorskip("jax")
jax_numpy = pytest.importorskip("jax.numpy")

NARROW = [np.dtype(t) for t in ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")]
NARROW += [np.dtype(ml_dtypes.bfloat16), np.dtype("complex64")]
WIDE = [np.dtype(t) for t in ("int64", "uint64", "float64", "complex128")]
SCALARS = [True, 3, 2.5, 1 + 2j]
MODES = {
    "32": ({}, False, NARROW),
    "x64_compat": ({"x64_compat": True}, False, NARROW + WIDE),
    "64": ({"default_dtype_bits": 64}, True, NARROW + WIDE),
}
each_mode = pytest.mark.parametrize("mode", MODES)

INEXACT = [
    "sin",
    "cos",
    "tan",
    "tanh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "reciprocal",
    "degrees",
    "radians",
    "sinh",
    "sinc",
    "fabs",
    "rint",
]
OTHERS = [
    "floor",
    "ceil",
    "trunc",
    "logical_not",
    "bitwise_invert",
    "negative",
    "positive",
    "absolute",
    "sign",
    "square",
    "real",
    "imag",
    "conjugate",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "bitwise_count",
]
UNARY = [*INEXACT, *OTHERS]
BINARY = [
    "add",
    "divide",
    "floor_divide",
    "remainder",
    "power",
    "maximum",
    "fmod",
    "float_power",
    "equal",
    "logical_and",
    "bitwise_and",
    "copysign",
    "fmax",
    "left_shift",
]
REDUCTIONS = [
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "std",
    "all",
    "any",
    "argmax",
    "ptp",
    "count_nonzero",
    "cumsum",
    "cumprod",
]
ACTIVATIONS = [
    "relu",
    "leaky_relu",
    "elu",
    "sigmoid",
    "silu",
    "softplus",
    "log_sigmoid",
    "gelu",
    "softmax",
    "log_softmax",
    "logsumexp",
]


def differs(name: str, args: list[Any]) -> bool:
    """Whether docs/differences.md says that these types are not jax's."""
    dtypes = [np.dtype(x.dtype) if hasattr(x, "dtype") else np.dtype(type(x)) for x in args]
    if name in ("log2", "log10", "gelu"):
        return not hasattr(args[0], "dtype")  # weak if the argument is
    if name in ("leaky_relu", "elu", "softplus"):
        return dtypes[0].kind in "biu"  # strong if the argument is
    # Booleans count as default integers.
    of_booleans = dtypes[0].kind == "b" and (name == "power" or all(d.kind == "b" for d in dtypes))
    return of_booleans and name in (
        "square",
        "floor_divide",
        "remainder",
        "power",
        "fmod",
        "left_shift",
        "bitwise_count",
    )


def of(library: Any, name: str) -> Any:
    if name in ACTIVATIONS:
        return getattr(corejax.nn if library is jnp else jax.nn, name)
    return getattr(library, name)


def check(name: str, cases: list[list[Any]], x64: bool) -> None:
    f = of(jnp, name)
    compared = 0
    for args in cases:
        arrays = [x if type(x) in (bool, int, float, complex) else jnp.asarray(x) for x in args]
        with jax.enable_x64(x64):
            given = [x if type(x) in (bool, int, float, complex) else jax_numpy.asarray(x) for x in args]
            try:
                expected = outputs(jax.eval_shape(lambda g=given: of(jax_numpy, name)(*g)))
            except (TypeError, ValueError):
                continue
        try:
            got = outputs(f(*arrays))
        except (TypeError, ValueError, OverflowError):
            continue
        traced = corejax.make_jaxpr(lambda a=arrays: f(*a))().out_avals
        shown = f"{name}{tuple(getattr(x, 'dtype', x) for x in args)}"
        assert [types(x) for x in got] == [types(x) for x in traced], shown
        if not differs(name, args):
            assert [types(x) for x in got] == [types(x) for x in expected], shown
        compared += 1
    assert compared >= len(cases) // 6, "too little was compared"


@pytest.mark.sampled
@each_mode
@pytest.mark.parametrize("name", [*UNARY, *REDUCTIONS, *ACTIVATIONS])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # within jax
def test_functions_of_one_argument(mode: str, name: str) -> None:
    settings, x64, dtypes = MODES[mode]
    with config.override(**settings):
        check(name, [[np.ones(2, d)] for d in dtypes] + ([] if name in REDUCTIONS else [[s] for s in SCALARS]), x64)


@pytest.mark.sampled
@each_mode
@pytest.mark.parametrize("name", BINARY)
def test_operations_of_two_operands(mode: str, name: str) -> None:
    settings, x64, dtypes = MODES[mode]
    some = ["bool", "int8", "int32", "uint8", "bfloat16", "float32", "complex64", "uint32", "int64", "float64"]
    if mode == "32":  # explicit 64-bit types are kept, and so are those that 32-bit ones promote to
        some = some[:-3]
    with config.override(**settings):
        arrays = [np.ones(2, d) for d in dtypes if d.name in some]
        pairs = [[x, y] for i, x in enumerate(arrays) for y in arrays[i:]]
        mixed = [[x, s] for x in arrays for s in SCALARS[:3]] + [[s, t] for s in SCALARS[:3] for t in SCALARS[:2]]
        check(name, pairs + mixed, x64)


def test_x64_compat_makes_no_64_bit_types() -> None:
    f64, i64 = np.float64(2), np.arange(3)
    with config.override(x64_compat=True):
        u32, i8, f16 = jnp.ones(3, "uint32"), jnp.ones(3, "int8"), jnp.ones(3, "float16")
        results = [
            (u32 * i8, "int32"),
            (i8 * np.int64(2), "int32"),
            (f64 * f16, "float32"),
            (abs(jnp.asarray(i64)), "int32"),
            (jnp.abs(i64), "int32"),
            (u32 / i64, "float32"),
            (jnp.where(u32 > 0, u32, i8), "int32"),
            (jnp.concatenate([u32, i8]), "int32"),
            (jnp.mean(i64), "float32"),
            (jnp.sin(i64), "float32"),
            (jnp.dot(u32, i8), "int32"),
        ]
        for out, dtype in results:
            assert out.dtype == dtype
        assert corejax.make_jaxpr(lambda x: x * i8)(u32).out_avals[0].dtype == "int32"
    assert (u32 * i8).dtype == "int64"


INTEGER_RESULTS = {
    "mean": lambda dtype: jnp.mean(jnp.array([1, 2**24 + 3]), dtype=dtype),
    "mean where": lambda dtype: jnp.mean(jnp.array([1, 3]), dtype=dtype, where=jnp.array([False, True])),
    "nanmean": lambda dtype: jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]), dtype=dtype),
    "linspace": lambda dtype: jnp.linspace(jnp.zeros(2), 10, 3, dtype=dtype),
    "logspace": lambda dtype: jnp.logspace(0, 2, 3, dtype=dtype),
    "geomspace": lambda dtype: jnp.geomspace(jnp.float32(1), 100, 3, dtype=dtype),
}


@pytest.mark.parametrize("name", INTEGER_RESULTS)
@pytest.mark.filterwarnings("error")
def test_integer_results_of_x64_compat_are_those_of_the_default_mode(name: str) -> None:
    f = INTEGER_RESULTS[name]
    for dtype in ("int32", "uint32"):
        wanted = np.asarray(f(dtype))
        with config.override(x64_compat=True):
            for compute in (f, corejax.jit(f, static_argnums=0)):
                out = compute(dtype)
                assert out.dtype == dtype
                np.testing.assert_array_equal(out, wanted)


def test_functions_of_64_bit_mode_follow_the_lattice() -> None:
    with config.override(default_dtype_bits=64):
        assert jnp.cos(jnp.ones(2, "int8")).dtype == np.float32
        assert jnp.cos(1).dtype == jnp.cos(jnp.ones(2, "int64")).dtype == np.float64
        assert (jnp.ones(2, "int16") / jnp.ones(2, "int8")).dtype == np.float32
        assert jnp.ones(2, "uint8").mean().dtype == jnp.mean(jnp.ones(2, bool)).dtype == np.float32
