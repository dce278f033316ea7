"""One program, three libraries: corejax is checked against NumPy for values, against jax for types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import Array

try:
    import jax
    import jax.numpy as jax_numpy
except ImportError:  # then only NumPy is the oracle
    jax = None  # type: ignore[assignment]

TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


def _given(library: Any, args: tuple[Any, ...]) -> list[Any]:
    return [library.asarray(a) if isinstance(a, np.ndarray) else a for a in args]


def outputs(out: Any) -> list[Any]:
    """A result as a list of arrays."""
    return list(out) if isinstance(out, list | tuple) else [out]


def types(x: Any) -> tuple[Any, ...]:
    """Shape, dtype, and weak type (booleans have none)."""
    return tuple(x.shape), np.dtype(x.dtype).name, bool(getattr(x, "weak_type", False)) and x.dtype != np.bool_


def check_types(f: Callable[..., Any], *args: Any, weak: bool = True) -> list[Any]:
    """`f(library, *args)` has the shapes, dtypes and (if `weak`) weak types that it has in jax; gives our results."""
    ours = outputs(f(jnp, *_given(jnp, args)))
    assert all(type(x) is Array for x in ours)
    for x in ours:
        host = np.asarray(x)
        assert (host.shape, host.dtype) == (x.shape, x.dtype), "the value is not what the aval promises"
    if jax is not None:
        theirs = outputs(jax.eval_shape(lambda: f(jax_numpy, *_given(jax_numpy, args))))
        end = None if weak else 2
        assert [types(x)[:end] for x in ours] == [types(x)[:end] for x in theirs]
    return ours


def check(f: Callable[..., Any], *args: Any, rtol: float | None = None) -> None:
    """As `check_types`; and the values are NumPy's."""
    ours = check_types(f, *args)
    with np.errstate(all="ignore"):
        expected = outputs(f(np, *args))
    assert len(ours) == len(expected)
    for x, y in zip(ours, expected, strict=True):
        assert_close(x, y, rtol)


def check_against_jax(f: Callable[..., Any], *args: Any, rtol: float | None = None) -> None:
    """As `check_types`; and the values are jax's. The test is skipped without jax."""
    pytest.importorskip("jax")
    ours = check_types(f, *args)
    for x, y in zip(ours, outputs(f(jax_numpy, *_given(jax_numpy, args))), strict=True):
        assert_close(x, y, rtol)


def assert_close(x: Any, y: Any, rtol: float | None = None) -> None:
    """Equal, or where it is a matter of rounding equal to the precision of the dtype."""
    name = np.dtype(x.dtype).name
    wide = np.complex128 if name.startswith("complex") else np.float64
    tolerance = TOLERANCES.get(name, 0.0) if rtol is None else rtol
    np.testing.assert_allclose(np.asarray(x).astype(wide), np.asarray(y).astype(wide), rtol=tolerance, atol=tolerance)


def check_compiled(f: Callable[..., Any], *args: Any, rtol: float | None = None) -> None:
    """`f(jnp, *args)` is the same under `jit`, in values and in types."""
    arrays = _given(jnp, args)
    eager = outputs(f(jnp, *arrays))
    compiled = outputs(corejax.jit(lambda *xs: f(jnp, *xs))(*arrays))
    assert [types(x) for x in eager] == [types(x) for x in compiled]
    for x, y in zip(eager, compiled, strict=True):
        assert_close(x, y, rtol)


def check_compiled_together(fs: Sequence[Callable[..., Any]], *args: Any, rtol: float | None = None) -> None:
    """As `check_compiled`, of several functions in one program."""
    check_compiled(lambda xp, *xs: [x for f in fs for x in outputs(f(xp, *xs))], *args, rtol=rtol)


def check_gradients(fs: Sequence[Callable[..., Any]], x: Any, rtol: float = 1e-4) -> None:
    """Derivatives of all `f(library, x)` are jax's: of one weighted sum of their elements, in one program."""
    pytest.importorskip("jax")

    def total(xp: Any, x: Any, fs: Sequence[Callable[..., Any]]) -> Any:
        parts = [y for f in fs for y in outputs(f(xp, x)) if y.size]
        return sum(xp.vdot(xp.cos(xp.arange(y.size) + 1.0 * i).astype(y.dtype), y).real for i, y in enumerate(parts))

    def compare(fs: Sequence[Callable[..., Any]]) -> None:
        ours = corejax.jit(corejax.grad(lambda x: total(jnp, x, fs)))(jnp.asarray(x))
        theirs = jax.jit(jax.grad(lambda x: total(jax_numpy, x, fs)))(jax_numpy.asarray(x))
        scale = float(np.max(np.abs(theirs), initial=1.0))
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * scale)

    try:
        compare(fs)
    except AssertionError:
        for f in fs:  # which one it is
            compare([f])
        raise


def check_mapped(fs: Sequence[Callable[..., Any]], *args: Any, rtol: float | None = None) -> None:
    """All `f(jnp, *args)` mapped over batches of two, in one call, are those of each element."""
    batches = [np.stack([a, a[::-1]]) for a in args]

    def of_all(*xs: Any) -> list[Any]:
        return [y for f in fs for y in outputs(f(jnp, *xs))]

    mapped = corejax.vmap(of_all)(*batches)
    for i in range(2):
        for x, y in zip(mapped, of_all(*(jnp.asarray(b[i]) for b in batches)), strict=True):
            assert_close(x[i], y, rtol)
