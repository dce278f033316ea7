"""Methods of arrays that are functions of `corejax.numpy`: jax's parameters, NumPy's values."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.core import array_methods
from corejax.extend import Array

X = np.array([[3, 1, 2], [0, 5, 4]], np.int32)
# Of shardings, of a layout in memory, or of jax's own.
ABSENT = {
    *("addressable_data", "addressable_shards", "committed", "device_buffer", "device_buffers", "flat", "format"),
    *("clone", "global_shards", "is_fully_addressable", "is_fully_replicated", "is_ready", "platform", "sharding"),
    *("traceback", "unsafe_buffer_pointer"),
}
WITHOUT_A_SIGNATURE = {"block_until_ready", "delete", "is_deleted", "on_device_size_in_bytes", "at"}


def test_jaxs_methods_are_there() -> None:
    jax = pytest.importorskip("jax")
    theirs: Any = jax.numpy.asarray(X)
    _ = jnp.asarray(X).T  # the plugins are loaded
    for name in dir(theirs):
        if name.startswith("_") or name in ABSENT:
            continue
        ours = getattr(Array, name, None) or array_methods.methods[name]
        method = getattr(theirs, name)
        if not callable(method) or name in WITHOUT_A_SIGNATURE:
            continue
        expected = list(inspect.signature(method).parameters)
        found = list(inspect.signature(ours).parameters)[1:]
        if found[:1] not in (["shape_"], ["axes"]):  # which have no names in calls
            assert found[: len(expected)] == expected, name


CALLS = {
    "sort": lambda x: x.sort(),
    "sort axis": lambda x: np.sort(x, 0) if isinstance(x, np.ndarray) else x.sort(0),
    "argsort": lambda x: x.argsort(axis=0),
    "argpartition": lambda x: x.argpartition(1)[:, 1],
    "searchsorted": lambda x: x[1].searchsorted(np.array([1, 4]), side="right"),
    "nonzero": lambda x: x.nonzero(),
    "take": lambda x: x.take(np.array([1, 0]), axis=1),
    "choose": lambda x: (x % 2).choose([x, -x]),
    "compress": lambda x: x.compress(np.array([True, False, True]), axis=1),
    "repeat": lambda x: x.repeat(2, axis=0),
    "diagonal": lambda x: x.diagonal(1),
    "trace": lambda x: x.trace(),
    "ptp": lambda x: np.ptp(x, axis=0),
    "view": lambda x: x.view(np.float32),
    "view of the same": lambda x: x.astype(np.int8).view(),
    "view of halves": lambda x: x.view(np.int16),
    "view of pairs": lambda x: x[:, :2].copy().view(np.int64),
    "view of complex numbers": lambda x: x[:, :2].copy().view(np.complex64),
    "view of booleans": lambda x: (x > 2).view(np.uint8),
    "byteswap": lambda x: x.byteswap(),
}


def sorted_in_place(x: Any) -> Any:
    return np.sort(x)


@pytest.mark.parametrize("name", CALLS)
def test_values(name: str) -> None:
    call = sorted_in_place if name == "sort" else CALLS[name]
    found, expected = CALLS[name](jnp.asarray(X)), call(X.copy())
    for a, b in zip(
        found if isinstance(found, tuple) else [found],
        expected if isinstance(expected, tuple) else [expected],
        strict=True,
    ):
        assert a.shape == b.shape
        assert a.dtype == b.dtype or {a.dtype, b.dtype} == {np.dtype("int32"), np.dtype("int64")}
        np.testing.assert_array_equal(
            np.asarray(a).view("u1") if a.dtype.kind in "fc" else a,
            np.asarray(b).view("u1") if b.dtype.kind in "fc" else b,
        )


def test_traced() -> None:
    def several(x: Any) -> Any:
        return x.sort(axis=0, descending=True), x.take(np.array([0, 2]), 1), x.view("float32"), x.nonzero(size=3)

    for a, b in zip(
        corejax.tree_util.tree_leaves(corejax.jit(several)(X)),
        corejax.tree_util.tree_leaves(several(jnp.asarray(X))),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8", "complex64", "float64"])
def test_views_of_views(dtype: str) -> None:
    x = jnp.arange(16).reshape(2, 8).astype(dtype)
    for other in ("uint8", "int32", "float64", "complex64", "bool"):
        if other != "bool":
            np.testing.assert_array_equal(x.view(other).view(dtype), x)
        wide = np.asarray(x).view(np.uint8).size // 2
        assert x.view(other).shape == (2, wide // np.dtype(other).itemsize)


ERRORS = [
    (lambda x: x.view("float64"), ValueError, r"view: the last axis of i32\[2,3\] does not hold"),
    (lambda x: x.view("int32", np.ndarray), NotImplementedError, "type must be None"),
    (lambda x: x.take(np.array([0]), out=x), NotImplementedError, "take: `out` has to be None"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        f(jnp.asarray(X))


# -- methods that are written beside the functions ---------------------------------------------------------------------

OPTIONS: dict[str, Any] = {
    "nothing left": {"var": {"ddof": 2}, "std": {"ddof": 5, "axis": 0}},
    "nothing left of a mask": {"var": {"ddof": 1, "where": np.array([True, False])}},
    "both names": {name: {"ddof": 1, "correction": 1} for name in ("var", "std")},
    "no mask": {name: {"where": np.float32(1)} for name in ("sum", "prod", "any", "all", "mean", "var")},
    "no mask beside an initial value": {name: {"where": 1, "initial": 0} for name in ("max", "min")},
    "real": {name: {"dtype": "float32"} for name in ("var", "std")},
    "integers": {"std": {"dtype": "int32"}, "var": {"dtype": "int32"}},
    "truth": {name: {"dtype": bool} for name in ("cumsum", "cumprod", "sum", "prod")},
    "the only axis": {name: {"axis": -1} for name in ("cumsum", "cumprod")},
    "plain": {name: {} for name in ("sum", "prod", "max", "min", "mean", "var", "std", "cumsum", "cumprod")},
}
ARRAYS = [jnp.asarray(2.0), jnp.arange(2), jnp.asarray([1 + 2j, 3]), jnp.zeros((2, 0)), jnp.asarray([True, False])]


@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_they_give_and_refuse_what_the_functions_do(case: str) -> None:
    def result(call: Any, x: Any, options: Any) -> Any:
        try:
            out = call(x, **options)
            return out.aval, repr(np.asarray(out).tolist())
        except Exception as error:
            return type(error)

    for name, options in OPTIONS[case].items():
        for x in ARRAYS:
            given = result(lambda x, **options: getattr(x, name)(**options), x, options)  # noqa: B023
            assert given == result(getattr(jnp, name), x, options), (name, x, options)
