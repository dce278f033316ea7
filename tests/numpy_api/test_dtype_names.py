"""Scalar types, questions about dtypes and values, printing options."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import config, dtypes

jax = pytest.importorskip("jax")


@pytest.mark.parametrize("name", dtypes.LONG_NAMES)
def test_every_dtype_has_a_scalar_type(name: str) -> None:
    kind = getattr(jnp, name)
    assert kind.dtype == np.dtype(kind) == jnp.dtype(kind) == dtypes.dtype(name)
    assert kind(0).dtype == kind and repr(kind) == f"corejax.numpy.{name}" and kind.__name__ == name
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert jnp.zeros(2, kind).dtype == name
    assert jnp.issubdtype(kind, jnp.generic) and jnp.result_type(kind) == kind
    theirs = getattr(jax.numpy, name)
    for other in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating"):
        assert jnp.isdtype(kind, other) == jax.numpy.isdtype(theirs, other)


def test_scalar_types_stand_for_numpys() -> None:
    assert jnp.float32 == np.float32 and np.float32 == jnp.float32 and jnp.float32 != np.float64
    assert {jnp.float32: 1}[np.float32] == 1 and jnp.float32 == np.dtype("float32")
    assert isinstance(np.float32(1), jnp.float32) and not isinstance(1.0, jnp.float32)
    assert isinstance(ml_dtypes.bfloat16(1), jnp.bfloat16) and isinstance(jnp.float32, type)
    assert jnp.single is jnp.float32 and jnp.cdouble is jnp.complex128 and jnp.bool is jnp.bool_
    assert np.zeros(2, jnp.bfloat16).dtype == ml_dtypes.bfloat16
    assert corejax.jit(lambda x: jnp.int8(x))(jnp.ones(2)).dtype == np.int8
    with pytest.raises(OverflowError):
        jnp.int8(300)


def test_scalar_types_read_numbers() -> None:
    for name, text in (("float32", "-inf"), ("float32", "1e-3"), ("int8", "-7"), ("complex64", "1+2j")):
        ours, theirs = getattr(jnp, name)(text), getattr(jax.numpy, name)(text)
        assert (ours.item(), ours.dtype, ours.weak_type) == (theirs.item(), theirs.dtype, theirs.weak_type)
    assert jnp.isnan(jnp.bfloat16("nan"))
    for name, text, error in (("int8", "1.5", ValueError), ("float32", "x", ValueError), ("bool", "1", TypeError)):
        with pytest.raises(error, match=f"{name}: .*{text}"):
            getattr(jnp, name)(text)


def test_default_scalar_types_follow_the_width() -> None:
    kinds = {"int_": "int", "uint": "uint", "float_": "float"}
    for name, stem in kinds.items():
        assert getattr(jnp, name) == getattr(jnp, stem + "32") and getattr(jnp, name)(1).dtype == stem + "32"
    assert jnp.complex_(1).dtype == np.complex64 and repr(jnp.int_) == "corejax.numpy.int_"
    with config.override(default_dtype_bits=64):
        assert jnp.int_(1).dtype == np.int64 and jnp.float_ == jnp.float64 and jnp.complex_ == np.complex128


@pytest.mark.parametrize("name", [n for n in dtypes.LONG_NAMES if n != "bool"])
def test_limits(name: str) -> None:
    if jnp.isdtype(name, "integral"):
        ours, theirs = jnp.iinfo(name), jax.numpy.iinfo(getattr(jax.numpy, name))
        assert (ours.bits, ours.min, ours.max) == (theirs.bits, theirs.min, theirs.max)
    else:
        ours, theirs = jnp.finfo(name), jax.numpy.finfo(getattr(jax.numpy, name))
        for field in ("bits", "eps", "max", "min", "smallest_normal", "tiny", "nmant", "nexp", "minexp", "maxexp"):
            assert float(getattr(ours, field)) == float(getattr(theirs, field)), field
    assert jnp.finfo(jnp.ones(2)).dtype == np.float32


def test_isdtype_and_can_cast() -> None:
    assert jnp.isdtype("int4", ("bool", "integral")) and jnp.isdtype(jnp.float32, np.float32)
    assert not jnp.isdtype(np.dtype("int8"), (jnp.int16, "real floating")) and jnp.isdtype("float16", "numeric")
    with pytest.raises(ValueError, match="is neither a kind"):
        jnp.isdtype("int8", "integers")
    with pytest.raises(TypeError, match="expected a dtype"):
        jnp.isdtype(1.0, "bool")
    with pytest.raises(TypeError, match="a kind must be a string, a dtype or a tuple"):
        jnp.isdtype("int8", 3)
    assert jnp.can_cast("int32", jnp.int64) and not jnp.can_cast("int64", "int32")
    assert jnp.can_cast(jnp.ones(2), "float64") and jnp.can_cast("float64", "int8", casting="unsafe")
    with pytest.raises(TypeError, match="no dtype of its own"):
        jnp.can_cast(1, "int8")
    assert jnp.object_ is np.object_ and jnp.character is np.character and jnp.flexible is np.flexible
    assert issubclass(jnp.ComplexWarning, RuntimeWarning)


def test_questions_about_values() -> None:
    z = jnp.array([1 + 1j, 2])
    np.testing.assert_array_equal(jnp.iscomplex(z), [True, False])
    np.testing.assert_array_equal(jnp.isreal(z), [False, True])
    np.testing.assert_array_equal(jnp.isreal(jnp.ones(2)), [True, True])
    np.testing.assert_array_equal(jnp.iscomplex(jnp.arange(2)), [False, False])
    for x in (z, 1j, np.complex64(1), [1j], jnp.ones(2), 1.0, None, "a", [1, 2], np.ones(1)):
        assert jnp.iscomplexobj(x) == jax.numpy.iscomplexobj(np.asarray(x) if isinstance(x, jnp.ndarray) else x)
        assert jnp.isrealobj(x) != jnp.iscomplexobj(x)
    for x in (1, 1.5, "a", np.float32(1), jnp.float32(1), np.array(1)):
        assert jnp.isscalar(x)
    for x in ([1], jnp.ones(1), None, (1,), object()):
        assert not jnp.isscalar(x)
    assert jnp.iterable([1]) and jnp.iterable(jnp.ones(2)) and not jnp.iterable(3)


def test_printing() -> None:
    x = jnp.array([1.23456, 1e-9])
    with jnp.printoptions(precision=2, suppress=True):
        assert repr(x) == "Array([1.23, 0.  ], dtype=float32)" and jnp.get_printoptions()["precision"] == 2
    assert jnp.array_repr(x, precision=2, suppress_small=True) == "Array([1.23, 0.  ], dtype=float32)"
    assert jnp.array_str(x, precision=3, suppress_small=True) == "[1.235 0.   ]"
    assert jnp.array_str(jnp.arange(3)) == "[0 1 2]" and jnp.array_repr(1) == repr(jnp.asarray(1))
    before = jnp.get_printoptions()["precision"]
    jnp.set_printoptions(precision=before)
    shown = []
    corejax.make_jaxpr(lambda x: shown.append(jnp.array_repr(x)) or x)(x)
    assert "float32[2]" in shown[0]
