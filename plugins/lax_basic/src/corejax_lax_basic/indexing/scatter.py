"""`scatter`: an array with windows replaced, at positions that are data.

    scatter : a[*s] i[*places,k] a[places and windows] -> a[*s]

StableHLO's `scatter`. If windows overlap, the last one wins on CPUs; on other platforms it is unspecified which wins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corejax.extend import get_aval, is_undef_primal, jvp_rules, transpose_rules
from corejax.extend.transforms import zero_cotangent
from corejax_lax_basic._base import by_name
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic._base.type_rules import ANY
from corejax_lax_basic.conversion.convert import as_weak_as
from corejax_lax_basic.creation.iota import broadcasted_iota
from corejax_lax_basic.elementwise.arithmetic import add_p
from corejax_lax_basic.elementwise.comparison import eq_p
from corejax_lax_basic.elementwise.select import select_n_p
from corejax_lax_basic.indexing._scatter_family import gathered, scatter_primitive, shape_of
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim
from corejax_lax_basic.shape.rearranging import reshape

__all__ = ["scatter", "scatter_p"]

scatter, scatter_p = scatter_primitive(
    "scatter", None, ANY, (0, 2), "Replace windows of an array by updates, at positions that are data."
)


def _winners(shape: Ints, indices: Any, updates: Ints, **params: Any) -> tuple[Any, Any]:
    """Return masks of the operand's elements that are not replaced, and of the updates that are not overwritten.

    Each window gets a number; the numbers are scattered like the windows, then gathered and compared.
    """
    numbers = params["dimension_numbers"]
    windows = numbers.update_window_dims
    places = tuple(d for d in range(len(updates)) if d not in windows)
    sizes = tuple(updates[d] for d in places)
    count = math.prod(sizes)
    dtype = np.dtype(np.int32 if count < 2**31 - 1 else np.int64)
    one = make_scalar(1, dtype)
    ids = reshape(add_p.bind(broadcasted_iota(dtype, (count,), 0), one), sizes)
    ids = broadcast_in_dim(ids, updates, places)
    none = broadcast_in_dim(make_scalar(0, dtype), shape, ())
    scattered = scatter_p.bind(none, indices, ids, **params)
    kept = eq_p.bind(scattered, make_scalar(0, dtype))
    return kept, eq_p.bind(ids, gathered(scattered, indices, updates, **params))


def _only(mask: Any, x: Any, other: float = 0.0) -> Any:
    return select_n_p.bind(mask, make_scalar(other, get_aval(x).dtype), x)


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """If windows may overlap, compute value and tangent as sums of winning updates, so that both have one winner."""
    x, indices, updates = primals
    x_dot, _, updates_dot = tangents
    x_dot = zero_cotangent(get_aval(x)) if x_dot is None else x_dot
    updates_dot = zero_cotangent(get_aval(updates)) if updates_dot is None else updates_dot
    if params["unique_indices"]:
        return tuple(scatter_p.bind(a, indices, b, **params) for a, b in ((x, updates), (x_dot, updates_dot)))
    kept, won = _winners(get_aval(x).shape, indices, get_aval(updates).shape, **params)
    # Adding -0.0 leaves every number unchanged, including -0.0.
    out = by_name.scatter_add(_only(kept, x, -0.0), indices, _only(won, updates, -0.0), **params)
    tangent = by_name.scatter_add(_only(kept, x_dot), indices, _only(won, updates_dot), **params)
    return as_weak_as(out, x), tangent


def _transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    ct_x = ct_updates = None
    if params["unique_indices"]:
        if is_undef_primal(x):
            zeros = zero_cotangent(get_aval(ct).update(shape=shape_of(updates)))
            ct_x = scatter_p.bind(ct, indices, zeros, **params)
        if is_undef_primal(updates):
            ct_updates = gathered(ct, indices, shape_of(updates), **params)
        return [ct_x, None, ct_updates]
    kept, won = _winners(shape_of(x), indices, shape_of(updates), **params)
    if is_undef_primal(x):
        ct_x = _only(kept, ct)
    if is_undef_primal(updates):
        ct_updates = _only(won, gathered(ct, indices, shape_of(updates), **params))
    return [ct_x, None, ct_updates]


jvp_rules.register(scatter_p, _jvp, symbolic_zeros=True)
transpose_rules.register(scatter_p, _transpose)
