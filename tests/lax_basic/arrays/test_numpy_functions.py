"""NumPy's functions that hand a foreign array's own method the work: `np.sum(x)` is `x.sum(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
from corejax.extend import Array, Tracer, as_array

X = np.array([[1.5, -2.0, 0.5], [3.25, 0.0, -1.5]], np.float32)
B = X > 0
CALLS: dict[str, tuple[Callable[[Any], Any], np.ndarray[Any, Any]]] = {
    **{f.__name__: (f, X) for f in (np.sum, np.mean, np.prod, np.max, np.min, np.std, np.var)},
    **{f.__name__: (f, B) for f in (np.any, np.all)},
    **{f"{f.__name__} axis": (lambda x, f=f: f(x, axis=1), X) for f in (np.sum, np.mean, np.max, np.argmax)},
    **{f"{f.__name__} keepdims": (lambda x, f=f: f(x, 0, keepdims=True), X) for f in (np.sum, np.min, np.prod, np.any)},
    **{f"{f.__name__} dtype": (lambda x, f=f: f(x, dtype=np.float64), X) for f in (np.sum, np.mean, np.std)},
    "std ddof": (lambda x: np.std(x, axis=-1, ddof=1, keepdims=True), X),
    "var ddof": (lambda x: np.var(x, ddof=1), X),
    "argmax": (np.argmax, X),
    "argmin keepdims": (lambda x: np.argmin(x, axis=0, keepdims=True), X),
    "clip": (lambda x: np.clip(x, -1.0, 1.0), X),
    "clip below": (lambda x: np.clip(x, 0.0, None), X),
    "round": (np.round, X),
    "round decimals": (lambda x: np.round(x, 1), X),
    "reshape": (lambda x: np.reshape(x, (3, -1)), X),
    "squeeze": (np.squeeze, X[:, None]),
    "squeeze axis": (lambda x: np.squeeze(x, axis=1), X[:, None]),
    "transpose": (np.transpose, X),
    "transpose axes": (lambda x: np.transpose(x, (1, 0)), X),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 1), X),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_are_methods(name: str) -> None:
    function, x = CALLS[name]
    expected = function(x)
    out = function(as_array(x))
    assert type(out) is Array
    if not name.startswith("arg"):  # NumPy's indices are 64 bits wide
        assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_tracers(name: str) -> None:
    function, x = CALLS[name]

    def traced(x: Any) -> Any:
        out = function(x)
        assert isinstance(out, Tracer)
        return out

    for out in (corejax.vmap(traced)(x[None])[0], corejax.jit(traced)(x)):
        np.testing.assert_allclose(out, function(x), rtol=1e-6)


def test_ravel_leaves_corejax() -> None:
    np.testing.assert_array_equal(np.ravel(as_array(X)), X.ravel())


REDUCTIONS = ("sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "argmin")


@pytest.mark.parametrize("name", [*REDUCTIONS, "round", "clip"])
def test_out_cannot_be_written_to(name: str) -> None:
    x, buffer = as_array(B if name in ("any", "all") else X), np.zeros(X.shape)
    bounds = (0, 1) if name == "clip" else ()
    for call in (getattr(x, name), lambda *args, **kw: getattr(np, name)(x, *args, **kw)):
        with pytest.raises(NotImplementedError, match=rf"^{name}: `out` has to be None, .*take the result"):
            call(*bounds, out=buffer)
    assert not buffer.any()


def test_positions_are_those_of_numpy() -> None:
    x = as_array(X)
    np.testing.assert_allclose(x.sum(0, None, None, True), X.sum(0, None, None, True))
    np.testing.assert_allclose(x.std(0, None, None, 1), X.std(0, None, None, 1), rtol=1e-6)
    np.testing.assert_allclose(x.max(1, None, True), X.max(1, None, True))
    assert round(as_array(np.float32(2.75)), 1) == np.float32(2.8)
