"""Convert types and memory between corejax and PyTorch, without copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch

from corejax.extend import ShapedArray

_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
TO_NUMPY = {
    **{getattr(torch, name): np.dtype(name) for name in _NAMES},
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
}
TO_TORCH = {dtype: of_torch for of_torch, dtype in TO_NUMPY.items()}


def aval_of(x: torch.Tensor, name: str) -> ShapedArray:
    """Return the corejax type of a tensor.

    Raises:
        TypeError: the value is not a tensor, or corejax does not have its dtype.
    """
    dtype = TO_NUMPY.get(getattr(x, "dtype", None))
    if dtype is None:
        what = f"a tensor of {x.dtype}" if isinstance(x, torch.Tensor) else f"{x!r} of type {type(x).__name__}"
        raise TypeError(f"to_torch: {name}: an argument is {what}; pass tensors of numbers or booleans (Tensor.to)")
    return ShapedArray(tuple([int(size) for size in x.shape]), dtype)


def torch_dtype(aval: ShapedArray, name: str) -> torch.dtype:
    """Return the dtype of a result.

    Raises:
        TypeError: PyTorch does not have the dtype.
    """
    dtype = TO_TORCH.get(np.dtype(aval.dtype))
    if dtype is None:
        raise TypeError(
            f"to_torch: {name}: a value is {aval.str_short()}, which PyTorch cannot hold; convert it inside"
        )
    return dtype


def has_derivatives(x: torch.Tensor) -> bool:
    """Return whether a tensor has a floating-point or complex dtype."""
    return bool(x.dtype.is_floating_point or x.dtype.is_complex)


def to_array(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor on the CPU as a NumPy array that shares its memory.

    Raises:
        NotImplementedError: the tensor is on another device.
    """
    if x.device.type != "cpu":
        raise NotImplementedError(
            f"to_torch: a corejax kernel takes tensors on the CPU, got one on {x.device}; move it with Tensor.cpu()"
        )
    x = x.detach()
    if x._is_zerotensor():  # PyTorch's symbolic zero, which has no memory
        x = x.clone()
    if x.dtype.is_complex:
        x = x.resolve_conj()
    x = x.resolve_neg()
    if x.dtype == torch.bfloat16:  # Tensor.numpy does not support it
        array: np.ndarray[Any, Any] = x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    else:
        array = x.numpy()
    return array


class _OwnMemory:
    """A DLPack exporter of a read-only array as writable memory, which only the resulting tensor will own."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(max_version=(1, 0))


def to_tensor(array: Any, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a result as a tensor that shares its memory, or a copy if the memory belongs to an input."""
    host = np.asarray(array)
    is_bfloat16 = host.dtype == ml_dtypes.bfloat16
    if is_bfloat16:
        host = host.view(np.int16)
    tensor = torch.from_dlpack(host if host.flags.writeable else _OwnMemory(host))
    if is_bfloat16:
        tensor = tensor.view(torch.bfloat16)
    if any(tensor.data_ptr() == x.data_ptr() for x in inputs):
        return tensor.clone()
    return tensor
