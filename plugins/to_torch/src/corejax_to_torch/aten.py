"""The table of primitives that correspond to operations of PyTorch, and the operands for which they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from corejax.extend import ShapedArray
from corejax_to_torch.tensors import TO_TORCH

Operation = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]

# For other dtypes, PyTorch lacks operations on the CPU, or rounds differently.
_DTYPES = frozenset(map(np.dtype, ("bool", "int32", "int64", "float32", "float64", "complex64", "complex128")))
_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
_NUMBERS = frozenset(d for d in _DTYPES if d.kind != "b")

_REAL: dict[str, Callable[..., torch.Tensor]] = {
    "erf": torch.erf, "erfc": torch.erfc, "erf_inv": torch.erfinv, "lgamma": torch.lgamma, "digamma": torch.digamma,
    "atan2": torch.atan2, "floor": torch.floor, "ceil": torch.ceil, "bessel_i0e": torch.special.i0e,
    "bessel_i1e": torch.special.i1e, "logistic": torch.sigmoid, "rem": torch.fmod, "max": torch.maximum,
    "min": torch.minimum, "log1p": torch.log1p, "expm1": torch.expm1, "exp2": torch.exp2, "rsqrt": torch.rsqrt,
}  # fmt: skip
_ANY: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "neg": torch.neg, "exp": torch.exp, "log": torch.log,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan,
    "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "asinh": torch.asinh, "sqrt": torch.sqrt,
    "square": torch.square, "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt,
    "ge": torch.ge, "real": torch.real, "imag": torch.imag, "conj": torch.conj_physical, "complex": torch.complex,
}  # fmt: skip
_BITS: dict[str, Callable[..., torch.Tensor]] = {
    "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor, "not": torch.bitwise_not,
}  # fmt: skip


def operation(name: str, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> Operation | None:
    """Return the operation on tensors of a primitive for these types, or None if PyTorch has no such operation."""
    in_dtypes = [np.dtype(a.dtype) for a in avals]
    if not all(dtype in _DTYPES for dtype in in_dtypes):
        return None
    kinds = {dtype.kind for dtype in in_dtypes}
    if name in _REAL and kinds == {"f"}:
        return _single(_REAL[name])
    if name in _ANY and "b" not in kinds and not (name in _SMOOTH and "i" in kinds):
        return _single(_ANY[name])
    if name in _BITS and kinds <= {"b", "i"}:
        return _single(_BITS[name])
    maker = _MAKERS.get(name)
    return None if maker is None else maker(in_dtypes, avals, params)


_SMOOTH = frozenset(
    ("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "sqrt")
)


def _single(fun: Callable[..., torch.Tensor]) -> Operation:
    return lambda xs: (fun(*xs),)


Maker = Callable[[Sequence[Any], Sequence[ShapedArray], Mapping[str, Any]], "Operation | None"]
_MAKERS: dict[str, Maker] = {}


def _maker(*names: str) -> Callable[[Maker], Maker]:
    def register(make: Maker) -> Maker:
        _MAKERS.update(dict.fromkeys(names, make))
        return make

    return register


@_maker("div")
def _div(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    return _single(torch.div) if in_dtypes[0].kind in "fc" else None


@_maker("abs")
def _abs(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    return _single(torch.abs) if in_dtypes[0] in _NUMBERS else None


@_maker("integer_pow")
def _integer_pow(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    exponent = params["y"]
    return (lambda xs: (torch.pow(xs[0], exponent),)) if in_dtypes[0] in _FLOATS else None


@_maker("select_n")
def _select_n(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    if len(in_dtypes) != 3 or in_dtypes[0].kind != "b":
        return None
    return lambda xs: (torch.where(xs[0], xs[2], xs[1]),)


@_maker("convert_element_type")
def _convert(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    new = np.dtype(params["new_dtype"])
    if (
        new not in _DTYPES
        or (in_dtypes[0].kind in "fc" and new.kind not in "fc")
        or (in_dtypes[0].kind == "c" != new.kind)
    ):
        return None  # XLA saturates numbers that are out of range, PyTorch does not
    dtype = TO_TORCH[new]
    return lambda xs: (xs[0].to(dtype),)


@_maker("reshape")
def _reshape(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    if params.get("dimensions") is not None:
        return None
    sizes = tuple(params["new_sizes"])
    return lambda xs: (torch.reshape(xs[0], sizes),)


@_maker("squeeze")
def _squeeze(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    shape = tuple(n for i, n in enumerate(avals[0].shape) if i not in params["dimensions"])
    return lambda xs: (torch.reshape(xs[0], shape),)


@_maker("transpose")
def _transpose(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    order = tuple(params["permutation"])
    return lambda xs: (xs[0].permute(order),)


@_maker("rev")
def _rev(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    axes = tuple(params["dimensions"])
    return lambda xs: (torch.flip(xs[0], axes),)


@_maker("concatenate")
def _concatenate(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    axis = params["dimension"]
    return lambda xs: (torch.cat(list(xs), axis),)


@_maker("broadcast_in_dim")
def _broadcast(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    shape, axes = tuple(params["shape"]), params["broadcast_dimensions"]
    view = [1] * len(shape)
    for i, axis in enumerate(axes):
        view[axis] = avals[0].shape[i]
    return lambda xs: (xs[0].reshape(view).expand(shape),)


@_maker("slice")
def _slice(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    strides = params["strides"] or (1,) * avals[0].ndim
    bounds = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    index = tuple(slice(*bound) for bound in bounds)
    return lambda xs: (xs[0][index],)


@_maker("iota")
def _iota(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    shape, axis, dtype = tuple(params["shape"]), params["dimension"], np.dtype(params["dtype"])
    if dtype not in _NUMBERS:
        return None
    view = [1] * len(shape)
    view[axis] = shape[axis]
    return lambda xs: (torch.arange(shape[axis]).to(TO_TORCH[dtype]).reshape(view).expand(shape),)


def _reduction(fun: Callable[..., torch.Tensor], kinds: str) -> Maker:
    def make(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
        axes = tuple(params["axes"])
        if in_dtypes[0].kind not in kinds:
            return None
        if not axes:
            return lambda xs: (xs[0],)
        return lambda xs: (fun(xs[0], dim=axes).to(xs[0].dtype),)

    return make


_MAKERS["reduce_sum"] = _reduction(torch.sum, "ifc")
_MAKERS["reduce_max"] = _reduction(torch.amax, "if")
_MAKERS["reduce_min"] = _reduction(torch.amin, "if")


def _cumulative(fun: Callable[..., torch.Tensor]) -> Maker:
    def make(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
        axis, reverse = params["axis"], params.get("reverse", False)
        if in_dtypes[0].kind not in "fc":
            return None
        if reverse:
            return lambda xs: (fun(xs[0].flip(axis), axis).flip(axis),)
        return lambda xs: (fun(xs[0], axis),)

    return make


_MAKERS["cumsum"] = _cumulative(torch.cumsum)
_MAKERS["cumlogsumexp"] = _cumulative(torch.logcumsumexp)


@_maker("dot_general")
def _dot_general(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    preferred = params.get("preferred_element_type")
    if (
        in_dtypes[0] != in_dtypes[1]
        or in_dtypes[0].kind not in "fc"
        or (preferred is not None and np.dtype(preferred) != in_dtypes[0])
    ):
        return None
    (contract_x, contract_y), (batch_x, batch_y) = params["dimension_numbers"]
    free_x, free_y = (
        [i for i in range(a.ndim) if i not in (*contract, *batch)]
        for a, contract, batch in zip(avals, (contract_x, contract_y), (batch_x, batch_y), strict=True)
    )
    if len(contract_x) == len(free_x) == len(free_y) == 1:
        # Inside torch.compile, PyTorch 2.13 has no second derivative of the views that einsum makes.
        order_x, order_y = (*batch_x, *free_x, *contract_x), (*batch_y, *contract_y, *free_y)
        return lambda xs: (torch.matmul(xs[0].permute(order_x), xs[1].permute(order_y)),)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    x, y = ([next(letters) for _ in range(a.ndim)] for a in avals)
    for i, j in zip((*contract_x, *batch_x), (*contract_y, *batch_y), strict=True):
        y[j] = x[i]
    out = [x[i] for i in (*batch_x, *free_x)] + [y[j] for j in free_y]
    text = f"{''.join(x)},{''.join(y)}->{''.join(out)}"
    return lambda xs: (torch.einsum(text, *xs),)


@_maker("stop_gradient")
def _stop_gradient(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    return lambda xs: (xs[0].detach(),)


@_maker("copy", "copy_p")
def _copy(in_dtypes: Any, avals: Any, params: Any) -> Operation | None:
    return lambda xs: (xs[0].clone(),)
