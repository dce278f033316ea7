"""The linear recurrence h[t] = a[t] * h[t - 1] + x[t].

Examples are exponential averages, first-order filters, and the state of linear recurrent networks. With an impl and an
abstract-eval rule the primitive works in eager and compiled programs. Each further rule makes one transformation
possible or fast; README.md has the times after each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    Primitive,
    ShapedArray,
    dtypes,
    get_aval,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
)
from corejax_linear_recurrence.kernels import recurrence


def _abstract_eval(a: ShapedArray, x: ShapedArray, *, reverse: bool) -> ShapedArray:
    given = f"got a {a.str_short()} and x {x.str_short()}"
    if a.dtype != x.dtype or not dtypes.is_inexact(x.dtype):
        raise TypeError(f"linear_recurrence takes real or complex floating-point numbers of one dtype, {given}")
    if a.shape != x.shape or not x.ndim:
        raise TypeError(f"linear_recurrence takes operands of one shape, of at least one axis, {given}")
    return x.strip_weak_type()


recurrence_p = Primitive(
    "linear_recurrence.linear_recurrence",
    impl=recurrence,
    abstract_eval=_abstract_eval,
    linear_in=(1,),
    doc="h[..., t] = a[..., t] * h[..., t - 1] + x[..., t], or t + 1 for t - 1 if reverse; h is 0 outside.",
)


@vmap_rules.register(recurrence_p)
def _vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], *, reverse: bool) -> tuple[Any, int]:
    """Move the batch axis to the front: a batch is additional rows."""
    a, x = (move_batch_axis(axis_size, dim, 0, v) for v, dim in zip(vals, dims, strict=True))
    return recurrence_p.bind(a, x, reverse=reverse), 0


@jvp_rules.register(recurrence_p, symbolic_zeros=True)
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, reverse: bool) -> tuple[Any, Any]:
    """Apply the same recurrence to the tangents: dh[t] = a[t] dh[t - 1] + (da[t] h[t - 1] + dx[t])."""
    (a, x), (da, dx) = primals, tangents
    h = recurrence_p.bind(a, x, reverse=reverse)
    if da is not None:
        driven = da * shifted(h, -1 if reverse else 1)
        dx = driven if dx is None else driven + dx
    return h, recurrence_p.bind(a, dx, reverse=reverse)


@transpose_rules.register(recurrence_p)
def _transpose(ct: Any, a: Any, x: Any, *, reverse: bool) -> list[Any]:
    """Apply the reversed recurrence to the cotangents: s[t] = a[t + 1] s[t + 1] + ct[t]."""
    return [None, recurrence_p.bind(shifted(a, 1 if reverse else -1), ct, reverse=not reverse)]


def shifted(x: Any, by: int) -> Any:
    """Shift the entries of the last axis by `by`, and fill with zeros."""
    from corejax import lax

    zero = lax.full((), 0, x.dtype)
    return lax.pad(x, zero, [(0, 0, 0)] * (x.ndim - 1) + [(by, -by, 0)])


def linear_recurrence(a: Any, x: Any, *, initial: Any = None, axis: int = -1, reverse: bool = False) -> Any:
    """Compute h[t] = a[t] * h[t - 1] + x[t] along an axis.

    Args:
        a: factors; broadcasts with x to a shape with at least one axis.
        x: inputs.
        initial: h before the first entry, 0 by default; broadcasts to the common shape without `axis`.
        axis: the axis that t runs along.
        reverse: run from the last entry to the first: h[t] = a[t] * h[t + 1] + x[t].

    Returns:
        h, with the common shape and dtype of the operands.

    Raises:
        TypeError: the common dtype is not a floating-point or complex one, or the operands are scalars.
        ValueError: the shapes do not broadcast, or there is no such axis.
    """
    import corejax.numpy as jnp

    # Determine the dtype before any conversion, so that a Python scalar takes the arrays' dtype without rounding.
    dtype = dtypes.result_type(*(v for v in (a, x, initial) if v is not None))
    a, x = jnp.broadcast_arrays(jnp.asarray(a, dtype), jnp.asarray(x, dtype))
    if not dtypes.is_inexact(dtype) or not x.ndim:
        given = " and ".join(get_aval(v).str_short() for v in (a, x))
        raise TypeError(f"linear_recurrence takes floating-point or complex numbers along an axis, got {given}")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"linear_recurrence: axis {axis} of arrays of {x.ndim} axes")
    a, x = (jnp.moveaxis(v, axis, -1) for v in (a, x))
    if initial is not None and x.shape[-1]:
        first = -1 if reverse else 0
        start = a[..., first] * jnp.asarray(initial, dtype)
        start = jnp.expand_dims(jnp.broadcast_to(start, x.shape[:-1]), -1)
        rest = [(0, 0)] * (x.ndim - 1) + [(x.shape[-1] - 1, 0) if reverse else (0, x.shape[-1] - 1)]
        x = x + jnp.pad(start, rest)
    return jnp.moveaxis(recurrence_p.bind(a, x, reverse=reverse), -1, axis)


__all__ = ["linear_recurrence"]
