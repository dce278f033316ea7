"""`x[index]` and `x.at[index]` against jax: every kind of index, run and compiled, derivatives, batches."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import corejax
from corejax.extend import as_array
from tests.lax_basic.structural_checks import DTYPES, assert_same, data

jax = pytest.importorskip("jax")
jnp = jax.numpy

s_ = np.s_
X = data(4, 5, 3)
INDICES = [
    s_[-1],
    s_[1:3],
    s_[::-2],
    s_[:, None, 1],
    s_[1:3, ::-1, ::2],
    s_[np.array([2, 0, 0])],
    s_[:, np.array([-1, 2])],
    s_[np.array([[0], [1]]), :, np.array([1, 2])],
    s_[np.array([0, 1]), ..., np.array([1, 2])],
    s_[:, 0, np.array([1, 2])],
    s_[1, None, np.array([0, 1])],
    s_[[0, 1], ::2],
    s_[[[0, 3], [1, 1]], :, 1],
    s_[X[:, 0, 0] > 0],
    s_[:, X[0] > 0],
    s_[True],
    s_[False],
    s_[True, 1],
    s_[::3, np.array([0, 1]), ::-1],
    s_[5:2, np.array([0, 1])],
    s_[np.array([], np.int32)],
    s_[np.uint8(2)],
    s_[:, np.array([0, 1])[:, None], np.array([2, 0], np.int8)],
]
UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def _by_numpy(x: Any, index: Any, name: str, y: Any) -> Any:
    """What `x.at[index]` does, in NumPy."""
    out = x.copy()
    if name == "set":
        out[index] = y
    elif name in UFUNCS:
        UFUNCS[name].at(out, index, y)
    else:
        factors = np.ones_like(x)
        np.multiply.at(factors, index, y)
        return x / factors if name == "divide" else x**factors
    return out


def test_every_kind_of_index() -> None:
    """Against NumPy; compiled, some of it, as one program."""

    def some(x: Any) -> Any:
        return [(x[i], x.at[i].get(mode="fill"), x.at[i].add(2.5), x.at[i].set(0.5, mode="clip")) for i in INDICES]

    for index in INDICES:
        at = as_array(X).at[index]
        y = data(*X[index].shape, seed=1) + 20
        for mode in (None, "clip", "fill"):
            np.testing.assert_array_equal(at.get(mode=mode), X[index], err_msg=f"{index}")
            np.testing.assert_array_equal(at.set(y, mode=mode), _by_numpy(X, index, "set", y), err_msg=f"{index}")
        np.testing.assert_array_equal(as_array(X)[index], X[index], err_msg=f"{index}")
        for name in [*UFUNCS, "divide"]:
            out = getattr(at, name)(y)
            np.testing.assert_allclose(out, _by_numpy(X, index, name, y), rtol=1e-6, err_msg=f"{index} {name}")
        np.testing.assert_allclose(at.power(2.0), _by_numpy(X, index, "power", 2.0), rtol=1e-6)
    compiled, expected = corejax.jit(some)(X), some(as_array(X))
    for a, b in zip(corejax.extend.tree.leaves(compiled), corejax.extend.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


ONES = [s_[1], s_[-1], s_[..., 2], s_[2, 3, 1], s_[None, 1], s_[:, -2], s_[1:, 2], s_[2, ::2], s_[0, np.array([2, 0])]]


def test_indices_that_are_arrays_already() -> None:
    """One number as `argmax` gives it, alone and beside others; traced ones as one program."""

    def arrays_of(index: Any) -> list[Any]:
        entries = index if isinstance(index, tuple) else (index,)
        return [as_array(np.asarray(e)) for e in entries if isinstance(e, int | np.ndarray)]

    def with_arrays(index: Any, arrays: Any) -> tuple[Any, ...]:
        given, entries = iter(arrays), index if isinstance(index, tuple) else (index,)
        return tuple(next(given) if isinstance(e, int | np.ndarray) else e for e in entries)

    def results(x: Any, arrays: Any) -> list[Any]:
        ats = [x.at[with_arrays(index, given)] for index, given in zip(ONES, arrays, strict=True)]
        return [
            [at.get(), at.get(mode="fill"), at.set(0.5), at.add(2.5), at.multiply(2.0, mode="drop"), at.apply(abs)]
            for at in ats
        ]

    arrays = [arrays_of(index) for index in ONES]
    found = results(as_array(X), arrays)
    for index, got in zip(ONES, found, strict=True):
        wanted = [X.copy() for _ in range(4)]
        for out, value in zip(wanted, (0.5, X[index] + 2.5, X[index] * 2, abs(X[index])), strict=True):
            out[index] = value
        for a, b in zip(got, [X[index], X[index], *wanted], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=f"{index}")
    leaves = corejax.extend.tree.leaves
    for a, b in zip(leaves(corejax.jit(results)(X, arrays)), leaves(found), strict=True):
        np.testing.assert_array_equal(a, b)


def test_out_of_bounds() -> None:
    """As in jax, in every mode."""
    index, y = s_[:, np.array([9, -9, 1, -1])], np.float32([[1, 2, 3, 4]]).reshape(1, 4, 1)
    for mode in (None, "clip", "fill", "drop", "promise_in_bounds"):
        results = []
        for x in (as_array(X), jnp.asarray(X)):
            at = x.at[index]
            results.append([x[index], at.get(mode=mode), at.set(y, mode=mode), at.add(y, mode=mode)])
            results[-1].append(at.get(mode=mode, fill_value=7, wrap_negative_indices=False))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{mode}")
    assert_same(as_array(X).at[9].get(mode="fill"), np.full((5, 3), np.nan, np.float32))
    assert_same(as_array(X).at[9].add(1.0, mode="drop"), X)


def test_derivatives_and_batches() -> None:
    """Over operand, indices and values; compositions of grad, vmap and jit."""
    i = np.array([2, 0, 2, 9], np.int32)
    y = data(4, 3, seed=2)
    x = data(5, 3, seed=3)

    def loss(x: Any, i: Any, y: Any) -> Any:
        a = x.at[i].set(y)
        b = x.at[i].add(y * y)
        c = x.at[i[:3]].max(y[:3], mode="clip")  # of what is out of bounds jax makes NaN
        d = x.at[i[:3]].min(y[:3])
        e = x.at[i[:1]].multiply(y[:1], unique_indices=True)
        return (
            (a**2 + b**2) * (c**2 + 1) * d
            + e**3
            + x[i].sum() ** 2
            + (x.at[i].get(mode="fill", fill_value=1) ** 2).sum()
        ).sum()

    def theirs(x: Any, i: Any, y: Any) -> Any:
        return jax.grad(loss, argnums=(0, 2))(x, i, y), jax.hessian(lambda y: loss(x, i, y))(y)

    slopes, curvature = jax.jit(theirs)(x, i, y)
    ours = corejax.grad(loss, argnums=(0, 2))
    compiled = corejax.jit(ours)
    for run in (ours, compiled):
        for a, b in zip(run(x, i, y), slopes, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    batches = data(2, 5, 3, seed=4), np.stack([i, i[::-1]]), data(2, 4, 3, seed=5)
    for axes in [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0), (0, None, 0)]:
        args = [b if a == 0 else v for a, b, v in zip(axes, batches, (x, i, y), strict=True)]
        out = corejax.vmap(corejax.grad(loss, argnums=(0, 2)), axes)(*args)
        for n in range(2):
            one = [v[n] if a == 0 else v for a, v in zip(axes, args, strict=True)]
            for a, b in zip(out, compiled(*one), strict=True):
                np.testing.assert_allclose(a[n], b, rtol=1e-4, atol=1e-4)
    hessian = corejax.hessian(lambda y: loss(as_array(x), i, y))(y)
    np.testing.assert_allclose(hessian, curvature, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any) -> None:
    x, y, i = data(4, 3, dtype=dtype), data(3, dtype=dtype, seed=1), np.array([2, 0, 2], np.uint8)
    names = ["set", "max", "min"] if np.dtype(dtype) == bool else ["set", "add", "subtract", "multiply"]

    def every(x: Any, y: Any, i: Any) -> Any:
        read = [x[i, i], x.at[i, 9 - i].get(mode="fill")]
        return [*read, *(getattr(x.at[i, i], name)(y) for name in names)]

    expected = jax.jit(every)(x, y, i)
    for outs in (every(as_array(x), y, i), corejax.jit(every)(x, y, i)):
        for out, wanted in zip(outs, expected, strict=True):
            assert_same(out, wanted)


def test_nested_lists_of_numbers_and_arrays() -> None:
    x = as_array(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(x.at[0].set([1, 2.5, 3]), [[1, 2.5, 3], [0, 0, 0]])
    np.testing.assert_array_equal(x.at[:].add(([1], [np.float32(2)])), [[1, 1, 1], [2, 2, 2]])

    def written(a: Any) -> Any:
        return x.at[1].set([a, 0, 2 * a])

    for f in (written, corejax.jit(written)):
        np.testing.assert_array_equal(f(as_array(np.float32(2))), [[0, 0, 0], [2, 0, 4]])
    out, tangent = corejax.jvp(written, (1.0,), (1.0,))
    np.testing.assert_array_equal(tangent, [[0, 0, 0], [1, 0, 2]])
    assert out.dtype == "float32"


def test_weak_types_and_conversions() -> None:
    assert as_array(1.0).at[()].set(2.0).weak_type
    assert not as_array(np.float32([1])).at[0].set(2.0).weak_type
    with pytest.warns(FutureWarning, match=r"at\[...\].set: values of float32 are rounded to int32"):
        out = as_array(np.arange(3, dtype=np.int32)).at[0].set(np.float32(2.7))
    assert_same(out, np.array([2, 1, 2], np.int32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(as_array(np.zeros(2, np.int8)).at[0].add(3), np.array([3, 0], np.int8))


def test_apply() -> None:
    """Again and again where an element is named more than once; differentiable where none is."""
    x, i = data(4), np.array([0, 2, 0])
    assert_same(as_array(x).at[i].apply(lambda v: 2 * v), x * np.array([4, 1, 2, 1], np.float32))
    assert_same(corejax.jit(lambda x, i: x.at[i].apply(lambda v: 2 * v))(x, i), x * np.array([4, 1, 2, 1], np.float32))
    factor = lambda w: as_array(x).at[:2].apply(lambda v: v * w).sum()
    assert_same(corejax.grad(factor)(3.0), x[:2].sum())
    with pytest.raises(Exception, match="unique_indices=True"):
        corejax.grad(lambda x: x.at[i].apply(lambda v: 2 * v).sum())(x)
    with pytest.raises(TypeError, match=r"returns i32\[\] for a scalar of dtype float32"):
        as_array(x).at[0].apply(lambda v: np.int32(1))


def test_texts() -> None:
    x = as_array(np.zeros(2, np.float32))
    assert (
        repr(x.at[1:, None])
        == "<x.at[1:, None] of Array([0., 0.], dtype=float32): get, set, add, ... return new arrays>"
    )
    assert repr(x.at) == "<x.at of Array([0., 0.], dtype=float32): index it, as in x.at[0].set(1)>"


ERRORS = [
    (lambda x: x.at[5].set(1), IndexError, "index 5 out of bounds for axis 0 with size 2"),
    (lambda x: x.at[0, 0, 0].add(1), IndexError, "Too many indices"),
    (lambda x: x.at[0].set("abc"), TypeError, r"at\[...\].set takes an array or a scalar, got str"),
    (lambda x: x.at[0].add([1, "a", 3]), TypeError, r"at\[...\].add: 'a' of type str is not a number"),
    (lambda x: x.at[:].set([[1], [2, 3]]), ValueError, "unequal lengths"),
    (lambda x: x.at[0].set(np.ones(4, np.float32)), ValueError, r"at\[...\].set: values f32\[4\] do not broadcast"),
    (lambda x: x.at[0].add(1, mode="wrap"), ValueError, "unknown mode 'wrap'"),
    (lambda x: x.at[0].get(fill_value=np.ones(2)), ValueError, "fill_value must be a scalar"),
    (lambda x: x.at[x].set(1), TypeError, r"one of type f32\[2,3\]"),
    (lambda x: x[[[0], [1, 2]], 0], TypeError, "must not be ragged"),
    (lambda x: x[[0.5], 0], TypeError, "integers or booleans"),
    (lambda x: x.__setitem__(0, 1.0), TypeError, r"x = x.at\[index\].set\(value\)"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f)):
        with pytest.raises(error, match=text):
            transformed(as_array(data(2, 3)))


def test_python_numbers_under_strict_promotion() -> None:
    x = np.arange(3)
    with corejax.config.override(numpy_dtype_promotion="strict"):
        for value in (True, 7):
            found = as_array(x).at[0].set(value)
            np.testing.assert_array_equal(found, [value, 1, 2])
            assert found.dtype == x.dtype


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_python_numbers_take_the_dtype_of_the_array(dtype: str) -> None:
    for value in (True, 7, 2.5):
        assert_same(as_array(np.ones(2, dtype)).at[0].set(value), np.array([value, 1], dtype))
        assert_same(as_array(np.ones(2, dtype)).at[0].add(value), np.array([value + 1, 1], dtype))


@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
def test_writes_to_an_axis_of_size_0_are_dropped_as_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    x, indices = np.zeros((0, 4), np.float32), np.array([2, -1])

    def written(lib: Any) -> Any:
        return lambda x, i: getattr(x.at[i], name)(lib.numpy.asarray(2.0))

    expected = jax.jit(written(jax))(x, indices)
    for f in (written(corejax), corejax.jit(written(corejax))):
        assert_same(f(as_array(x), as_array(indices)), np.asarray(expected))
        assert_same(f(as_array(x), as_array(indices[0])), np.asarray(expected))
    with pytest.raises(IndexError, match="size 0"):
        as_array(x).at[as_array(indices)].get()
    with pytest.raises(IndexError, match="size 0"):
        getattr(as_array(x).at[2], name)(2.0)
