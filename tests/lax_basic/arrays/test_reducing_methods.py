"""Reductions as methods: `where`, `initial` and the other arguments that NumPy's have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax.extend import as_array

X = np.array([[1.5, -2.0, 0.5], [3.25, 0.0, -1.5]], np.float32)
MASK = np.array([[True, False, True], [False, True, True]])
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("sum", {"where": MASK}),
    ("sum", {"where": MASK[0], "axis": 1, "keepdims": True, "initial": 3}),
    ("prod", {"where": MASK, "axis": 0, "initial": 2}),
    ("max", {"where": MASK, "initial": -9.0}),
    ("max", {"axis": 1, "initial": 2}),
    ("min", {"where": MASK, "initial": 9.0, "axis": 0}),
    ("mean", {"where": MASK}),
    ("mean", {"where": MASK, "axis": 1, "keepdims": True}),
    ("var", {"where": MASK, "axis": 0}),
    ("var", {"correction": 1}),
    ("var", {"ddof": 1, "axis": 1}),
    ("std", {"where": MASK, "keepdims": True}),
    ("any", {"where": ~MASK, "axis": 0}),
    ("all", {"where": MASK, "axis": 1}),
]
TYPES = ["float32", "int8", "bool", "complex64", "float16"]


def _defined(name: str, dtype: str) -> bool:
    """Whether NumPy's value, of wider numbers, is the one to expect."""
    undefined = {"complex64": ("max", "min"), "bool": ("max", "min"), "int8": ("mean", "var", "std")}
    return name not in undefined.get(dtype, ())


@pytest.mark.parametrize("dtype", TYPES)
def test_values(dtype: str) -> None:
    x = X.astype(dtype)
    for name, given in CALLS:
        if not _defined(name, dtype):
            continue
        found = getattr(as_array(x), name)(**given)
        wide = x.astype(np.complex128 if dtype == "complex64" else np.float64)
        expected = getattr(np, name)(x if name in ("any", "all") else wide, **given)
        np.testing.assert_allclose(np.asarray(found).astype(expected.dtype), expected, rtol=2e-3, err_msg=str(given))


@pytest.mark.parametrize("dtype", [*TYPES, "uint8", "int32", "bfloat16"])
def test_types(dtype: str) -> None:
    jax = pytest.importorskip("jax")
    import ml_dtypes  # noqa: F401

    x = X.astype("int8").astype(dtype)
    for name, given in [*CALLS, ("sum", {"promote_integers": False}), ("sum", {"dtype": "bool"}), ("round", {})]:
        if (name, dtype) == ("round", "bool") or (
            dtype == "complex64" and (name in ("max", "min") or "dtype" in given)
        ):
            continue
        found = getattr(as_array(x), name)(**given)
        theirs = jax.eval_shape(lambda x, n=name, g=given: getattr(x, n)(**g), jax.numpy.asarray(x))
        assert (found.dtype, found.shape) == (theirs.dtype, theirs.shape), (name, given)


def test_traced() -> None:
    def several(x: Any, mask: Any) -> Any:
        return [getattr(x, name)(**{**given, "where": mask}) for name, given in CALLS if "where" in given]

    eager = several(as_array(X), as_array(MASK[:1]))
    for a, b in zip(corejax.jit(several)(X, MASK[:1]), eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    slope = corejax.grad(lambda x: x.mean(where=MASK))(X)
    np.testing.assert_allclose(slope, MASK / MASK.sum(), rtol=1e-6)


def test_layouts() -> None:
    x = as_array(X)
    np.testing.assert_array_equal(x.reshape(3, 2, order="F"), X.reshape(3, 2, order="F"))
    np.testing.assert_array_equal(x.ravel("F"), X.ravel("F"))
    np.testing.assert_array_equal(x.flatten(order="F"), X.flatten("F"))


ERRORS = [
    (lambda x: x.max(where=MASK), "max: with `where` give `initial`"),
    (
        lambda x: x.sum(where=np.ones(4, bool)),
        r"sum: `where` has shape \(4,\), which does not broadcast to .*, \(2, 3\)",
    ),
    (lambda x: x.sum(initial=np.ones(3)), r"sum: `initial` is a scalar, got f32\[3\]"),
    (lambda x: x[:0].min(), "no elements along the reduced axes"),
    (lambda x: x.reshape(6, order="B"), "order must be 'C' or 'F', got 'B'"),
]


@pytest.mark.parametrize(("f", "text"), ERRORS)
def test_errors(f: Any, text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f)):
        with pytest.raises(ValueError, match=text):
            transformed(as_array(X))


def test_axes_that_are_none() -> None:
    x = as_array(X)
    calls = [
        *(getattr(x, name) for name in ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "squeeze")),
        *(getattr(x, name) for name in ("argmax", "argmin", "cumsum", "cumprod", "sort", "argsort")),
        *(lambda axis: x.transpose(0, axis), lambda axis: x.swapaxes(axis, 0), lambda axis: x.diagonal(axis1=axis)),
    ]
    for call in calls:
        for axis in (2, -3):
            with pytest.raises(np.exceptions.AxisError, match=f"axis.* {axis} is out of bounds") as caught:
                call(axis=axis)
            assert isinstance(caught.value, ValueError) and isinstance(caught.value, IndexError)
