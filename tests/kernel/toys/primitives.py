"""Primitives with one result, each with all of its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    UndefPrimal,
    defbroadcasting,
    defjvp,
    deflinear,
    defvectorized,
    defzero,
    get_aval,
    is_undef_primal,
    transpose_rules,
    vmap_rules,
)

__all__ = [
    "add_p", "broadcast_p", "complex_p", "convert_p", "cos_p", "greater_p", "imag_p", "mul_p", "neg_p", "pad_p",
    "real_p", "reshape_p", "sin_p", "slice_p", "sum_p", "transpose_p",
]  # fmt: skip


def nary(name: str, out_dtype: Any = None) -> Any:
    """Abstract eval of an elementwise primitive: equal dtypes; equal shapes, or scalars among them."""

    def abstract_eval(*avals: ShapedArray) -> ShapedArray:
        shown = ", ".join(a.str_short() for a in avals)
        if len({a.dtype for a in avals}) > 1:
            raise TypeError(f"toy.{name}: operands of different dtypes: {shown}")
        shapes = {a.shape for a in avals if a.shape}
        if len(shapes) > 1:
            raise TypeError(f"toy.{name}: operands of different shapes: {shown}")
        shape = shapes.pop() if shapes else ()
        return ShapedArray(shape, out_dtype or avals[0].dtype, not out_dtype and all(a.weak_type for a in avals))

    return abstract_eval


def elementwise(name: str, impl: Any, out_dtype: Any = None) -> Primitive:
    """A primitive that NumPy computes, with its vmap rule."""
    primitive = Primitive(f"toy.{name}", impl=impl, abstract_eval=nary(name, out_dtype), tags=("elementwise",))
    (defbroadcasting if getattr(impl, "nin", 2) > 1 else defvectorized)(primitive)
    return primitive


add_p = elementwise("add", np.add)
mul_p = elementwise("mul", np.multiply)
greater_p = elementwise("greater", np.greater, np.bool_)
neg_p = elementwise("neg", np.negative)
sin_p = elementwise("sin", np.sin)
cos_p = elementwise("cos", np.cos)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    return x if get_aval(x).shape == shape else broadcast_p.bind(x, shape=shape, axes=tuple(range(len(shape))))


def _gather(ct: Any, operand: Any) -> Any:
    """The cotangent of an operand that may have been a scalar beside arrays."""
    ndim = get_aval(ct).ndim
    return ct if get_aval(operand).ndim == ndim else sum_p.bind(ct, axes=tuple(range(ndim)))


defjvp(
    add_p,
    lambda t, x, y: _spread(t, get_aval(x).shape or get_aval(y).shape),
    lambda t, x, y: _spread(t, get_aval(x).shape or get_aval(y).shape),
)
defjvp(mul_p, lambda t, x, y: mul_p.bind(t, y), lambda t, x, y: mul_p.bind(x, t))
defjvp(sin_p, lambda t, x: mul_p.bind(t, cos_p.bind(x)))
defjvp(cos_p, lambda t, x: mul_p.bind(t, neg_p.bind(sin_p.bind(x))))
deflinear(neg_p, lambda ct, x: [neg_p.bind(ct)])
defzero(greater_p)


@transpose_rules.register(add_p)
def _add_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    return [_gather(ct, v) if is_undef_primal(v) else None for v in (x, y)]


@transpose_rules.register(mul_p)
def _mul_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    if is_undef_primal(x) and is_undef_primal(y):
        raise TypeError("toy.mul is not linear in both operands")
    return [_gather(mul_p.bind(ct, other), v) if is_undef_primal(v) else None for v, other in ((x, y), (y, x))]


# -- shapes ---------------------------------------------------------------------------------------------------

sum_p = Primitive(
    "toy.reduce_sum",
    impl=lambda x, *, axes: np.sum(x, axes, dtype=x.dtype),
    abstract_eval=lambda a, *, axes: a.update(shape=[d for i, d in enumerate(a.shape) if i not in axes]),
)
# New axes at positions `axes` of the result.
broadcast_p = Primitive(
    "toy.broadcast",
    impl=lambda x, *, shape, axes: np.broadcast_to(np.expand_dims(x, axes), shape),
    abstract_eval=lambda a, *, shape, axes: a.update(shape=shape),
)
reshape_p = Primitive(
    "toy.reshape",
    impl=lambda x, *, shape: np.reshape(x, shape),
    abstract_eval=lambda a, *, shape: a.update(shape=shape),
)
transpose_p = Primitive(
    "toy.transpose",
    impl=lambda x, *, perm: np.transpose(x, perm),
    abstract_eval=lambda a, *, perm: a.update(shape=[a.shape[i] for i in perm]),
)


def _cut(x: Any, start: int, stop: int, axis: int) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _resized(a: ShapedArray, axis: int, size: int) -> ShapedArray:
    return a.update(shape=(*a.shape[:axis], size, *a.shape[axis + 1 :]))


slice_p = Primitive(
    "toy.slice",
    impl=lambda x, *, start, stop, axis: _cut(x, start, stop, axis),
    abstract_eval=lambda a, *, start, stop, axis: _resized(a, axis, stop - start),
)
pad_p = Primitive(
    "toy.pad",
    impl=lambda x, *, low, high, axis: np.pad(x, [(low, high) if i == axis else (0, 0) for i in range(x.ndim)]),
    abstract_eval=lambda a, *, low, high, axis: _resized(a, axis, a.shape[axis] + low + high),
)


def _sum_transpose(ct: Any, x: UndefPrimal, *, axes: tuple[int, ...]) -> list[Any]:
    return [broadcast_p.bind(ct, shape=x.aval.shape, axes=axes)]


def _slice_transpose(ct: Any, x: UndefPrimal, *, start: int, stop: int, axis: int) -> list[Any]:
    return [pad_p.bind(ct, low=start, high=x.aval.shape[axis] - stop, axis=axis)]


def _pad_transpose(ct: Any, x: UndefPrimal, *, low: int, high: int, axis: int) -> list[Any]:
    return [slice_p.bind(ct, start=low, stop=low + x.aval.shape[axis], axis=axis)]


deflinear(sum_p, _sum_transpose)
deflinear(broadcast_p, lambda ct, x, *, shape, axes: [sum_p.bind(ct, axes=axes)])
deflinear(reshape_p, lambda ct, x, *, shape: [reshape_p.bind(ct, shape=x.aval.shape)])
deflinear(transpose_p, lambda ct, x, *, perm: [transpose_p.bind(ct, perm=tuple(np.argsort(perm).tolist()))])
deflinear(slice_p, _slice_transpose)
deflinear(pad_p, _pad_transpose)


def _front(x: Any, dim: int) -> Any:
    """`x` with its batching axis in front."""
    perm = (dim, *(i for i in range(get_aval(x).ndim) if i != dim))
    return x if dim == 0 else transpose_p.bind(x, perm=perm)


def _in_front(primitive: Primitive, shifted: Any) -> None:
    """A vmap rule that moves the batching axis to the front and shifts the params past it."""

    @vmap_rules.register(primitive)
    def rule(axis_size: int, vals: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
        return primitive.bind(_front(vals[0], dims[0]), **shifted(axis_size, **params)), 0


def _next(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)


_in_front(sum_p, lambda size, axes: {"axes": _next(axes)})
_in_front(broadcast_p, lambda size, shape, axes: {"shape": (size, *shape), "axes": _next(axes)})
_in_front(reshape_p, lambda size, shape: {"shape": (size, *shape)})
_in_front(transpose_p, lambda size, perm: {"perm": (0, *_next(perm))})
_in_front(slice_p, lambda size, axis, **params: {"axis": axis + 1, **params})
_in_front(pad_p, lambda size, axis, **params: {"axis": axis + 1, **params})


# -- dtypes ---------------------------------------------------------------------------------------------------

convert_p = Primitive(
    "toy.convert",
    impl=lambda x, *, dtype: x.astype(dtype),
    abstract_eval=lambda a, *, dtype: ShapedArray(a.shape, dtype),
)
real_p = Primitive(
    "toy.real",
    impl=lambda x: np.real(x).copy(),
    abstract_eval=lambda a: a.update(dtype=np.zeros((), a.dtype).real.dtype),
)
imag_p = Primitive(
    "toy.imag",
    impl=lambda x: np.imag(x).copy(),
    abstract_eval=lambda a: a.update(dtype=np.zeros((), a.dtype).real.dtype),
)
complex_p = Primitive(
    "toy.complex",
    impl=lambda x, y: np.asarray(x + 1j * y).astype(np.result_type(x, 1j)),
    abstract_eval=lambda a, b: nary("complex")(a, b).update(dtype=np.result_type(a.dtype, np.complex64)),
)
defvectorized(convert_p, real_p, imag_p)
defbroadcasting(complex_p)


def _zeros_beside(ct: Any) -> Any:
    return np.zeros((), get_aval(ct).dtype)


deflinear(real_p, lambda ct, x: [complex_p.bind(ct, _zeros_beside(ct))])
deflinear(imag_p, lambda ct, x: [complex_p.bind(_zeros_beside(ct), neg_p.bind(ct))])
deflinear(complex_p, lambda ct, x, y: [real_p.bind(ct), imag_p.bind(neg_p.bind(ct))])
defjvp(
    convert_p,
    lambda t, x, *, dtype: convert_p.bind(t, dtype=dtype) if np.issubdtype(dtype, np.inexact) else None,
)
transpose_rules.register(convert_p, lambda ct, x, *, dtype: [convert_p.bind(ct, dtype=x.aval.dtype)])
