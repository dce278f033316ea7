"""What `Array` and tracers are to Python and to other libraries: conversions, protocols, places, texts."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import errors

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
MAKE = {"host": lambda: jnp.asarray(X), "device": lambda: corejax.jit(lambda x: x * 1)(X)}


# -- DLPack ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_dlpack_shares_memory_with_those_who_know_read_only(make: Any) -> None:
    x = make()
    seen = np.from_dlpack(x)
    np.testing.assert_array_equal(seen, X)
    assert np.shares_memory(seen, np.asarray(x)) and not seen.flags.writeable
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_copies_for_others() -> None:
    class Old:
        """A consumer before DLPack 1.0."""

        def __init__(self, x: Any) -> None:
            self.x = x

        def __dlpack__(self, **options: Any) -> Any:
            return self.x.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return self.x.__dlpack_device__()

    x = jnp.asarray(X)
    copy = np.from_dlpack(Old(x))
    assert not np.shares_memory(copy, np.asarray(x))
    assert not np.shares_memory(np.from_dlpack(x, copy=True), np.asarray(x))
    with pytest.raises(BufferError, match=r"max_version=\(1, 0\)"):
        x.__dlpack__(copy=False)
    with pytest.raises(BufferError, match=r"dl_device has to be \(1, 0\), got \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    np.testing.assert_array_equal(copy, X)


# -- NumPy's functions -------------------------------------------------------------------------------------------


def test_ufuncs_of_values_are_numpys() -> None:
    x = jnp.asarray(X)
    assert type(np.sin(x)) is np.ndarray
    np.testing.assert_array_equal(np.add(x, 1), X + 1)
    out = np.zeros_like(X)
    np.multiply(x, x, out=out)
    np.testing.assert_array_equal(out, X * X)


UFUNCS = [np.sin, lambda x: np.add(x, 1), np.add.reduce, lambda x: np.add(np.ones(3), x, out=np.ones(3))]


@pytest.mark.parametrize("f", UFUNCS)
@pytest.mark.parametrize("transform", [corejax.jit, corejax.vmap], ids=["jit", "vmap"])
def test_ufuncs_of_traced_values_say_what_to_use(f: Any, transform: Any) -> None:
    with pytest.raises(errors.TracerArrayConversionError, match=r"use the corejax\.numpy function of its name"):
        transform(lambda x: f(x))(X)


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "@": lambda a, b: a @ b.T,
    "divmod": lambda a, b: divmod(a, b)[1],
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def test_operators_of_numpys_arrays_leave_it_to_traced_values() -> None:
    left, right = X + 2, X[::-1] + 1
    found = corejax.jit(lambda x: [f(left, x) for f in OPERATORS.values()])(right)
    for name, f, x in zip(OPERATORS, OPERATORS.values(), found, strict=True):
        np.testing.assert_allclose(x, f(left, right), rtol=1e-5, err_msg=name)
    assert corejax.jit(lambda x: np.float32(2) * x)(3.0) == 6


# -- Python ------------------------------------------------------------------------------------------------------


def test_membership() -> None:
    x = jnp.asarray(X)
    assert 2.0 in x and 7.0 not in x and "a" not in x
    with pytest.raises(errors.TracerBoolConversionError):
        corejax.jit(lambda x: 2.0 in x)(x)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int4", "complex64"])
def test_iteration(dtype: str) -> None:
    x = jnp.asarray(X).astype(dtype)
    rows = [*x, *jnp.asarray(2.0).reshape(1), *x[0], *jnp.zeros((0, 2))]
    assert [r.shape for r in rows] == [(3,), (3,), (), (), (), ()]
    assert rows[2].weak_type and rows[0].dtype == rows[-1].dtype == x.dtype
    np.testing.assert_array_equal(np.stack([np.asarray(r) for r in rows[:2]]), np.asarray(x))
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(x[0, 0])


def test_iteration_inside_of_a_program_is_recorded() -> None:
    x = jnp.asarray(X)
    assert len(corejax.make_jaxpr(lambda: sum(row.sum() for row in x))().jaxpr.eqns) > 4
    slopes = corejax.grad(lambda v: sum((row * v).sum() for row in x))(2.0)
    assert slopes == X.sum()


def test_texts() -> None:
    x = jnp.asarray(X)
    assert f"{x[0, 1]:.2f}" == "1.00"
    with pytest.raises(errors.ConcretizationTypeError, match=r"by format\(\)"):
        corejax.jit(lambda x: f"{x:.2f}")(1.0)
    assert corejax.grad(lambda x: [f"{x:.1f}"] and x)(2.0) == 1


def test_html() -> None:
    assert (
        jnp.asarray([1.5, 2])._repr_html_() == "<code>float32[2]</code><table><tr><td>1.5</td><td>2.</td></tr></table>"
    )
    large = jnp.zeros((50, 60), bool)._repr_html_()
    assert large.count("<tr>") == 11 and large.count("False") == 100
    assert "<pre>[]</pre>" in jnp.zeros((0, 2))._repr_html_()
    assert "<td>1.0</td>" not in jnp.ones(2, "bfloat16")._repr_html_()
    assert jnp.asarray([1e-9, 2 / 3])._repr_html_().endswith("<td>1.e-09</td><td>0.6666667</td></tr></table>")
    assert "<code>key&lt;fry&gt;[]</code>" in corejax.random.key(0)._repr_html_()


# -- places ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_devices(make: Any) -> None:
    x = make()
    device = corejax.devices()[0]
    assert x.device == device
    moved = x.to_device(device)
    assert moved.devices() == {device}
    np.testing.assert_array_equal(moved, X)
    with pytest.raises(TypeError, match=r"corejax\.devices\(\), got 'gpu'"):
        x.to_device("gpu")
    with pytest.raises(ValueError, match="stream has to be None, got 3"):
        x.to_device(device, stream=3)
    assert corejax.jit(lambda x: (x.to_device(x.device) * 2).sum())(x) == 30


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_deleted_arrays(make: Any) -> None:
    x = make()
    view = np.asarray(x)
    assert not x.is_deleted()
    x.delete()
    assert x.is_deleted() and x.shape == (2, 3)
    uses = [lambda: x + 1, lambda: np.asarray(x), lambda: corejax.jit(lambda x: x)(x), lambda: repr(x), x.tolist]
    for use in [*uses, lambda: pickle.dumps(x)]:
        with pytest.raises(RuntimeError, match="has been deleted"):
            use()
    np.testing.assert_array_equal(view, X)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks classes for buffers from 3.12 on")
@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_buffers(make: Any) -> None:
    view = memoryview(make())
    assert view.readonly and view.shape == (2, 3)
    np.testing.assert_array_equal(np.asarray(view), X)
    with pytest.raises(BufferError, match="no bfloat16"):
        memoryview(jnp.asarray(np.ones(2, ml_dtypes.bfloat16)))


def test_formats_of_numbers_are_for_scalars():
    assert f"{corejax.Array(np.float32(2)):.2f}" == "2.00" and f"{corejax.Array(np.ones(2)):>8}" == " [1. 1.]"
    with pytest.raises(TypeError, match=r"format '\.2f' is for one number, not for f32\[2\]; format its elements"):
        f"{corejax.Array(np.ones(2, np.float32)):.2f}"
