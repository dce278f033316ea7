"""convert_element_type against jax for every pair of dtypes; derivatives, batching, weak types, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corejax
import corejax.numpy as jnp
from corejax_lax_basic.conversion.convert import convert_element_type, convert_element_type_p
from corejax_lax_basic.lax import mul
from tests.lax_basic.support import (
    assert_same,
    check_derivatives,
    check_vmap,
    compiled,
    dtypes_of,
    extremes,
    jax,
    sample,
)

__all__ = ["jax"]

ALL = dtypes_of("biufc")


@pytest.mark.parametrize("source", ALL, ids=str)
def test_every_pair_of_dtypes(source: Any, jax: Any) -> None:
    x = np.concatenate([extremes(source), sample(source, (6,), low=-300.0, high=300.0)])

    def to_all(convert: Any) -> Any:
        return lambda x: [convert(x, target) for target in ALL]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        expected = jax.jit(to_all(jax.lax.convert_element_type))(x)
    eager, through_xla = to_all(convert_element_type)(x), compiled(to_all(convert_element_type))(x)
    for target, wanted, *got in zip(ALL, expected, eager, through_xla, strict=True):
        assert np.asarray(wanted).dtype == target
        if target == np.bool_:
            wanted = x != 0  # jax drops the imaginary part, though not in `astype`
        for value in got:
            assert_same(value, wanted)


@given(st.floats(allow_nan=True), st.sampled_from(dtypes_of("iu")))
def test_floats_saturate(x: float, dtype: Any) -> None:
    info = np.iinfo(dtype)
    if np.isfinite(x):
        expected = max(min(int(x), info.max), info.min)
    else:
        expected = 0 if np.isnan(x) else info.max if x > 0 else info.min
    assert int(np.asarray(convert_element_type(np.float64(x), dtype))) == expected


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(dtypes_of("iu")))
def test_integers_wrap(x: int, dtype: Any) -> None:
    got = int(np.asarray(convert_element_type(np.int64(x), dtype)))
    assert (got - x) % 2 ** (8 * dtype.itemsize) == 0


def test_shapes_and_no_elements() -> None:
    for shape in [(), (0,), (2, 0), (2, 3)]:
        for dtype in (bool, np.int8, np.float16, np.complex64):
            assert_same(convert_element_type(np.zeros(shape, np.float64), dtype), np.zeros(shape, dtype))


def test_nothing_is_bound_where_the_dtype_is_right() -> None:
    jaxpr = corejax.make_jaxpr(lambda x: convert_element_type(x, np.float32))(np.float32(1))
    assert not jaxpr.jaxpr.eqns
    jaxpr = corejax.make_jaxpr(lambda x: convert_element_type(x, np.float32))(1.0)
    assert [e.primitive for e in jaxpr.jaxpr.eqns] == [convert_element_type_p]


def test_weak_types() -> None:
    assert not convert_element_type(1.0, np.float32).weak_type
    assert convert_element_type_p.bind(1, new_dtype=np.dtype(np.float32), weak_type=True).weak_type


def test_python_types_have_the_default_width() -> None:
    assert convert_element_type(np.int8(1), float).dtype == np.float32
    with corejax.config.override(default_dtype_bits=64):
        assert convert_element_type(np.int8(1), float).dtype == np.float64
    assert convert_element_type(np.int8(1), "bfloat16").dtype.name == "bfloat16"


class Ours:
    """The two functions of a test, by the names that they have in jax.lax."""

    mul = staticmethod(mul)
    convert_element_type = staticmethod(convert_element_type)


def test_derivatives(jax: Any) -> None:
    x = sample(np.float64, (3,))
    for target in (np.float64, np.float32, np.complex128):

        def function(lax: Any, target: Any = target) -> Any:
            def apply(x: Any) -> Any:
                y = lax.convert_element_type(x, target)
                return lax.convert_element_type(lax.mul(y, y), np.complex128)

            return apply

        check_derivatives(jax, function(Ours), function(jax.lax), x, rtol=1e-5, atol=1e-5)


def test_no_derivative_through_integers() -> None:
    def function(x: Any) -> Any:
        return convert_element_type(convert_element_type(x, np.int32), np.float32)

    assert float(corejax.grad(function)(np.float32(2.5))) == 0.0


def test_vmap() -> None:
    check_vmap(lambda x: convert_element_type(x, np.int32), (2,))


@pytest.mark.parametrize("bad", ["float31", object, "f32"])
def test_errors(bad: Any) -> None:
    with pytest.raises(TypeError):
        convert_element_type(np.float32(1), bad)


def test_not_an_array() -> None:
    with pytest.raises(TypeError, match="not an array"):
        convert_element_type([1.0], np.float32)


def test_an_imaginary_part_is_dropped_with_a_warning() -> None:
    x = jnp.array([1.0 + 2.0j, 3.0])
    for convert in (
        lambda: x.astype("float32"),
        lambda: jnp.astype(x, int),
        lambda: corejax.jit(lambda x: x.astype(float))(x),
    ):
        with pytest.warns(
            np.exceptions.ComplexWarning, match=r"astype: of c64\[2\] the imaginary parts are dropped.*x.real.astype"
        ):
            np.testing.assert_array_equal(convert(), [1, 3])
    x.astype(bool), x.astype("complex128"), x.real.astype(int)
