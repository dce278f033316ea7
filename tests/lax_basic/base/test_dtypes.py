"""Promotion of dtypes, with jax (x64 enabled) as the oracle, and dtypes that go with others."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from corejax import dtypes, float0
from corejax.dtypes import TypePromotionError
from corejax.extend import config

ALL = list(dtypes.LONG_NAMES.values())
NAMES = [d.name for d in ALL]

# Prints promotion of all pairs, in a process of its own: the switch for 64 bits is process-wide.
ORACLE = """
import itertools, json, sys
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from jax._src import dtypes

def aval(name, weak):
    d = np.dtype(name)
    return type("X", (), {"aval": jax.core.ShapedArray((), d, weak_type=weak), "dtype": d})()

rows = []
for a, b in itertools.product(json.loads(sys.argv[1]), repeat=2):
    for wa, wb in itertools.product((False, True), repeat=2):
        try:
            out, weak = dtypes.lattice_result_type(aval(a, wa), aval(b, wb))
            rows.append([a, wa, b, wb, out.name, bool(weak)])
        except dtypes.TypePromotionError:
            rows.append([a, wa, b, wb, None, None])
print(json.dumps(rows))
"""


@pytest.fixture(scope="module")
def oracle():
    pytest.importorskip("jax")
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    run = [sys.executable, "-c", ORACLE, json.dumps(NAMES)]
    return json.loads(subprocess.run(run, env=env, check=True, capture_output=True, text=True).stdout)


def promoted(a, weak_a, b, weak_b):
    try:
        out, weak = dtypes.lattice_result_type((np.dtype(a), weak_a), (np.dtype(b), weak_b))
        return [out.name, weak]
    except TypePromotionError:
        return [None, None]


def test_promotion_is_that_of_jax_with_x64(oracle):
    with config.override(default_dtype_bits=64):
        wrong = [(*row, promoted(*row[:4])) for row in oracle if promoted(*row[:4]) != row[4:]]
    assert len(oracle) > 1000
    assert not wrong


def test_explicit_dtypes_promote_the_same_whatever_the_default(oracle):
    strong = [row for row in oracle if not row[1] and not row[3]]
    with config.override(default_dtype_bits=32):
        wrong = [(*row, promoted(*row[:4])) for row in strong if promoted(*row[:4]) != row[4:]]
    assert not wrong


def test_64_bits_in_64_bits_out(oracle):
    wide = {"int64", "uint64", "float64", "complex128"}
    rows = [row for row in oracle if (row[0] in wide and not row[1]) or (row[2] in wide and not row[3])]
    with config.override(default_dtype_bits=32):
        wrong = [(*row, promoted(*row[:4])) for row in rows if promoted(*row[:4]) != row[4:]]
    assert not wrong


def test_promotion_is_commutative_and_idempotent():
    for a, b in itertools.product(NAMES, repeat=2):
        assert promoted(a, False, b, False) == promoted(b, False, a, False)
        assert promoted(a, False, a, False) == [a, False]


@pytest.mark.parametrize(
    "strong, scalar, expected",
    [
        ("int32", 2.0, "float32"),
        ("bool", 2, "int32"),
        ("bool", 2.0, "float32"),
        ("uint8", 2, "uint8"),
        ("int64", 2, "int64"),
        ("float16", 2, "float16"),
        ("bfloat16", 2.0, "bfloat16"),
        ("float8_e4m3fn", 2.0, "float8_e4m3fn"),
        ("float32", 2j, "complex64"),
        ("float64", 2j, "complex128"),
        ("int4", 2, "int4"),
        ("float16", True, "float16"),
        ("int64", 2.0, "float64"),
    ],
)
def test_python_scalars_yield(strong, scalar, expected):
    assert dtypes.result_type(np.ones(1, strong), scalar) == np.dtype(expected)
    assert dtypes.promote_types(strong, type(scalar)) == np.dtype(expected)


@pytest.mark.parametrize("bits", [32, 64])
def test_scalars_among_themselves_have_the_default_width(bits):
    with config.override(default_dtype_bits=bits):
        assert dtypes.result_type(1, 2).itemsize * 8 == bits
        assert dtypes.result_type(1, 2.0, return_weak_type_flag=True) == (np.dtype(f"float{bits}"), True)
        assert dtypes.result_type(True, 1j) == np.dtype(f"complex{2 * bits}")
        assert dtypes.result_type(True, False, return_weak_type_flag=True) == (np.dtype(bool), False)
        assert dtypes.dtype(1.5) == dtypes.dtype(float) == dtypes.default_float_dtype() == np.dtype(f"float{bits}")
        assert dtypes.finfo(float).bits == bits
        assert dtypes.inexact_dtype_of(int) == np.dtype(f"float{bits}")
        assert dtypes.inexact_dtype_of("int8") == dtypes.inexact_dtype_of(bool) == np.dtype("float32")
    assert dtypes.default_int_dtype(bits) == np.dtype(f"int{bits}")
    assert dtypes.default_uint_dtype(bits) == np.dtype(f"uint{bits}")
    assert dtypes.default_complex_dtype(bits) == np.dtype(f"complex{2 * bits}")


def test_weak_types_of_avals_are_seen():
    aval = SimpleNamespace(dtype=np.dtype("float32"), weak_type=True)
    array = SimpleNamespace(aval=aval, dtype=aval.dtype)
    for weak in (aval, array):
        assert dtypes.result_type(weak, "bfloat16") == np.dtype("bfloat16")
        assert dtypes.dtype_and_weak_type(weak) == (np.dtype("float32"), True)
    assert dtypes.dtype_and_weak_type(np.float32(1)) == (np.dtype("float32"), False)
    assert dtypes.dtype_and_weak_type(np.float64(1)) == (
        np.dtype("float64"),
        False,
    )  # a `float` by inheritance


@pytest.mark.parametrize(
    "a, b, cast",
    [
        ("float8_e4m3fn", "float32", "float32"),
        ("int4", "int32", "int32"),
        ("uint4", "int4", "int32"),
        ("float8_e5m2", "float8_e4m3fn", "float32"),
    ],
)
def test_no_promotion_names_both_dtypes_and_the_cast(a, b, cast):
    with pytest.raises(TypePromotionError) as caught:
        dtypes.promote_types(a, b)
    assert a in str(caught.value) and b in str(caught.value) and f"x.astype('{cast}')" in str(caught.value)
    assert caught.value.dtypes == (np.dtype(a), np.dtype(b))


def test_nothing_to_promote():
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()
    with pytest.raises(ValueError, match="at least one"):
        dtypes.lattice_result_type()


def test_issubdtype_is_jaxs():
    jnp = pytest.importorskip("jax.numpy")
    abstract = [
        np.generic,
        np.number,
        np.integer,
        np.signedinteger,
        np.unsignedinteger,
        np.inexact,
        np.floating,
    ]
    categories = [*abstract, np.complexfloating, np.bool_, np.float32, ml_dtypes.bfloat16, "float64"]
    for d, category in itertools.product([*ALL, *abstract], categories):
        assert dtypes.issubdtype(d, category) == bool(jnp.issubdtype(d, category)), (d, category)


def test_related_dtypes():
    assert dtypes.real_dtype_of("complex64") == np.dtype("float32")
    assert dtypes.real_dtype_of("complex128") == np.dtype("float64")
    assert dtypes.real_dtype_of("bfloat16") == np.dtype("bfloat16")
    assert dtypes.complex_dtype_of("float64") == np.dtype("complex128")
    assert dtypes.complex_dtype_of("bfloat16") == dtypes.complex_dtype_of("complex64") == np.dtype("complex64")
    assert dtypes.inexact_dtype_of("int64") == np.dtype("float64")
    assert dtypes.inexact_dtype_of("float16") == np.dtype("float16")
    assert dtypes.canonicalize_dtype("float64") == np.dtype("float64")
    assert dtypes.canonicalize_dtype(None) == dtypes.default_float_dtype()
    assert dtypes.issubdtype(None, np.floating) and not dtypes.issubdtype(None, np.complexfloating)
    with config.override(x64_compat=True):
        assert dtypes.canonicalize_dtype("uint64") == np.dtype("uint32")
        assert dtypes.canonicalize_dtype("int8") == np.dtype("int8")
    with pytest.raises(TypeError, match="is not bool, int, float or complex"):
        dtypes.scalar_dtype(str)


def test_bits_and_kinds_of_numbers_under_jaxs_names():
    names = ["bool", "int4", "uint2", "int64", "float8_e4m3fn", "bfloat16", "float64", "complex64"]
    assert [dtypes.itemsize_bits(name) for name in names] == [8, 4, 2, 64, 8, 16, 64, 64]
    assert [dtypes.scalar_type_of(name) for name in names] == [bool, int, int, int, float, float, float, complex]
    assert dtypes.scalar_type_of(np.float16(1)) is float and dtypes.float0 is float0
    assert np.dtype(dtypes.bfloat16) == dtypes.dtype("bfloat16")
