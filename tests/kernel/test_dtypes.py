"""Dtypes: names, kinds, limits and default widths."""

from __future__ import annotations

import enum
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from corejax import dtypes

ALL = [d for d in dtypes.SHORT_NAMES if not dtypes.is_extended(d)]
NAMES = [d.name for d in ALL]


def test_dtype_of_anything():
    class Three(enum.IntEnum):
        THREE = 3

    for x, name in [
        ("bfloat16", "bfloat16"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.float64, "float64"),
        (np.dtype("int8"), "int8"),
        (np.ones(2, np.int64), "int64"),
        (np.uint8(3), "uint8"),
        (SimpleNamespace(dtype=np.dtype("float16")), "float16"),
        (bool, "bool"),
        (True, "bool"),
        (int, "int32"),
        (3, "int32"),
        (Three.THREE, "int32"),
        (2j, "complex64"),
        ("float8_e4m3fn", "float8_e4m3fn"),
    ]:
        assert dtypes.dtype(x) == np.dtype(name), x


@pytest.mark.parametrize(
    "x, words",
    [
        (None, "NoneType"),
        (object(), "neither names a dtype nor has one"),
        ("f32", "did you mean 'float32'"),
        ("flaot32", "did you mean 'float32'"),
        ("nonsense", "does not name a dtype"),
        (np.dtype("O"), "not supported"),
        (np.array(["a"]), "not supported"),
        (np.dtype("M8[s]"), "not supported"),
        (np.dtype("f4").newbyteorder(), "x.astype('float32')"),
        (str, "str"),
    ],
)
def test_what_has_no_dtype_is_refused(x, words):
    with pytest.raises(TypeError, match=words.replace("(", r"\(").replace(")", r"\)")):
        dtypes.dtype(x)


def test_short_names_round_trip():
    for d in ALL:
        assert dtypes.from_short_name(dtypes.short_name(d)) is d or dtypes.from_short_name(dtypes.short_name(d)) == d
    short = {"float32": "f32", "bfloat16": "bf16", "int32": "i32", "uint8": "u8", "complex64": "c64"}
    short |= {"bool": "bool", "float8_e4m3fn": "f8_e4m3fn"}
    for name, expected in short.items():
        assert dtypes.short_name(name) == expected
    with pytest.raises(ValueError, match="bf16"):
        dtypes.from_short_name("float32")
    with pytest.raises(TypeError, match="not supported"):
        dtypes.short_name(np.dtype("O"))


def test_short_names_are_jaxs():
    jax = pytest.importorskip("jax")
    for d in ALL:
        assert jax.core.ShapedArray((), d, weak_type=False).str_short(short_dtypes=True) == f"{dtypes.short_name(d)}[]"


def test_kinds():
    kinds = {
        dtypes.is_bool: ["bool"],
        dtypes.is_unsigned: ["uint4", "uint64"],
        dtypes.is_integer: ["int4", "uint4", "int8", "int64", "uint64"],
        dtypes.is_float: ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float16", "float64"],
        dtypes.is_complex: ["complex64", "complex128"],
    }
    everything = sorted({name for names in kinds.values() for name in names})
    for predicate, names in kinds.items():
        assert [name for name in everything if predicate(name)] == sorted(names)
        assert all(predicate(np.dtype(name)) for name in names)
    assert all(dtypes.is_inexact(d) == (dtypes.is_float(d) or dtypes.is_complex(d)) for d in ALL)


def test_limits():
    assert dtypes.finfo("bfloat16").bits == 16
    assert float(dtypes.finfo("complex128").eps) == np.finfo(np.float64).eps
    assert dtypes.iinfo("int4").max == 7
    with pytest.raises(TypeError, match="see iinfo"):
        dtypes.finfo("int32")
    with pytest.raises(TypeError, match="see finfo"):
        dtypes.iinfo("float32")
