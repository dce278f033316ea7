"""The recurrence on NumPy arrays: in C, and in NumPy for installations without a compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

_kernel: Any
try:
    from corejax_linear_recurrence import _kernel  # type: ignore[attr-defined, no-redef]
except ImportError:  # built without a compiler, or run from the sources
    _kernel = None

#: Whether the C kernel was built.
COMPILED = _kernel is not None

_KINDS = "fdFD"  # dtypes that the kernel supports, as NumPy's type characters


def in_numpy(a: np.ndarray, x: np.ndarray, *, reverse: bool) -> np.ndarray:
    """Loop over the last axis, with one NumPy operation on all rows per entry."""
    if reverse:
        return in_numpy(a[..., ::-1], x[..., ::-1], reverse=False)[..., ::-1]
    h = x.copy()
    for t in range(1, x.shape[-1]):
        h[..., t] += a[..., t] * h[..., t - 1]
    return h


def in_c(a: np.ndarray, x: np.ndarray, *, reverse: bool) -> np.ndarray:
    """Loop over rows and entries in C."""
    h = np.empty(x.shape, x.dtype)
    if h.size:
        _kernel.run(np.ascontiguousarray(a), np.ascontiguousarray(x), h, x.dtype.char, x.shape[-1], reverse)
    return h


def recurrence(a: np.ndarray, x: np.ndarray, *, reverse: bool) -> np.ndarray:
    """Compute the recurrence in C if the kernel was built, else in NumPy; narrow floats compute in float32."""
    if x.dtype.char not in _KINDS:
        wide = recurrence(a.astype(np.float32), x.astype(np.float32), reverse=reverse)
        return wide.astype(x.dtype)
    return in_c(a, x, reverse=reverse) if COMPILED else in_numpy(a, x, reverse=reverse)
