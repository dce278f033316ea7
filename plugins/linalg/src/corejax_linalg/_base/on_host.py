"""Fast paths for one matrix in eager mode: call LAPACK directly, since each operation would cost more than the matrix.

Each function returns None if the fast path does not apply, and the caller takes the general path. That is so for
stacks, for arrays that are traced, observed, sharded or must be converted, for singular matrices, and with the setting
`linalg_errors`. The results are those of the general path.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, bottom_trace, config, current_trace, host_value
from corejax.extend.devices import is_spread
from corejax.extend.messages import observe
from corejax.extend.transforms import in_context
from corejax_linalg._base.eager import routine
from corejax_linalg._base.types import LAPACK


def _matrix(a: Any, *others: Any) -> bool:
    """Return whether the fast path applies to a square matrix and arrays of the same dtype."""
    if current_trace() is not bottom_trace() or in_context() or observe.watched or config.linalg_errors:
        return False
    if type(a) is not Array or a.dtype not in LAPACK or a.ndim != 2 or not a.size or a.shape[0] != a.shape[1]:
        return False
    return all(type(x) is Array and x.dtype == a.dtype and not x.weak_type and not is_spread(x) for x in (a, *others))


def _result(value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return Array(np.asarray(value, dtype).reshape(shape), ShapedArray(shape, dtype))


def solved(a: Any, b: Any) -> Any:
    """Solve `a @ x = b` for x, `[n]` or `[n, k]`."""
    if not _matrix(a, b) or b.ndim not in (1, 2) or b.shape[0] != a.shape[0] or not b.size:
        return None
    # Use gesv, not getrs: if other processes occupy the cores, the threads of getrs in OpenBLAS wait up to 16 ms.
    *_, x, info = routine("gesv", a.dtype)(host_value(a), host_value(b))
    return None if info else _result(x, b.shape, b.dtype)


def inverse(a: Any) -> Any:
    """Return the inverse."""
    if not _matrix(a):
        return None
    eye = np.eye(a.shape[0], dtype=a.dtype, order="F")
    *_, x, info = routine("gesv", a.dtype)(host_value(a), eye, overwrite_b=True)
    return None if info else _result(x, a.shape, a.dtype)


def determinant(a: Any) -> Any:
    """Return the determinant; two and three rows use the formula."""
    if not _matrix(a):
        return None
    size = a.shape[0]
    with np.errstate(all="ignore"):
        if size > 3 or size == 1:
            factors, pivots, _ = routine("getrf", a.dtype)(host_value(a))  # U has a zero on its diagonal if singular
            odd = np.count_nonzero(pivots != np.arange(size)) % 2
            diagonal = factors.diagonal()
            vanishes = not diagonal.all() and not np.isnan(diagonal).any()  # 0 even if other factors overflow
            found = a.dtype.type(0) if vanishes else np.prod(diagonal) * a.dtype.type(-1 if odd else 1)
        elif size == 2:
            (p, q), (r, s) = host_value(a)
            found = p * s - q * r
        else:
            x, y, z = host_value(a)
            found = np.sum(x * (y[[1, 2, 0]] * z[[2, 0, 1]] - y[[2, 0, 1]] * z[[1, 2, 0]]))
    return _result(found, (), a.dtype)
