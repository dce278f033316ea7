"""Convert types and memory between corejax and PyTorch, without copies."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
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
        TypeError: the value is not a dense tensor, or corejax does not have its dtype.
        NotImplementedError: the program is exported for symbolic sizes. `torch.compile` compiles it again instead.
    """
    dtype = TO_NUMPY.get(getattr(x, "dtype", None))
    if dtype is None:
        what = f"a tensor of {x.dtype}" if isinstance(x, torch.Tensor) else f"{x!r} of type {type(x).__name__}"
        raise TypeError(f"to_torch: {name}: an argument is {what}; pass tensors of numbers or booleans (Tensor.to)")
    require_dense(x, name)
    if torch.compiler.is_exporting() and not all(isinstance(size, int) for size in x.shape):
        sizes = ", ".join(map(str, x.shape))
        raise NotImplementedError(
            f"to_torch: {name}: an argument has the symbolic shape ({sizes}); export it for known sizes, once for each"
        )
    return ShapedArray(tuple([int(size) for size in x.shape]), dtype)


def require_dense(x: torch.Tensor, name: str) -> None:
    """Raise TypeError if a tensor is sparse: each operation of PyTorch takes other layouts, or none but dense."""
    if x.layout is not torch.strided:
        raise TypeError(
            f"to_torch: {name}: a tensor has the layout {x.layout}, but corejax takes dense tensors; convert it with "
            "Tensor.to_dense()"
        )


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


def is_traced(xs: Sequence[torch.Tensor]) -> bool:
    """Return whether PyTorch's compiler traces these tensors."""
    functorch = torch._C._functorch
    for x in xs:
        while functorch.is_functorch_wrapped_tensor(x):
            x = functorch.get_unwrapped(x)
        if type(x).__name__ in ("FakeTensor", "FunctionalTensor"):
            return True
    return False


def to_array(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor on the CPU as a NumPy array in row-major order.

    It shares the tensor's memory unless the tensor is strided, or conjugated or negated lazily.
    """
    x = x.contiguous()  # XLA would copy a strided array element by element
    if x.dtype is torch.bfloat16:  # Tensor.numpy does not support it
        bits: np.ndarray[Any, Any] = x.detach().view(torch.int16).numpy(force=True)
        return bits.view(ml_dtypes.bfloat16)
    array: np.ndarray[Any, Any] = x.numpy(force=True)
    return array


def constant(host: np.ndarray[Any, Any], traced: bool) -> torch.Tensor:
    """Return a copy of an array as a tensor; `traced` says whether PyTorch's compiler traces the program."""
    if traced and not host.ndim:  # torch.export takes numbers, but not new tensors
        if host.dtype.kind == "c":  # PyTorch prints complex numbers that are not finite as names that do not exist
            return torch.complex(constant(host.real, traced), constant(host.imag, traced))
        return torch.full((), host.item(), dtype=TO_TORCH[host.dtype])
    narrow = host.dtype == ml_dtypes.bfloat16  # PyTorch does not take it from NumPy
    tensor = torch.from_numpy(np.array(host.view(np.int16) if narrow else host))
    if traced:
        tensor = torch.ops.aten.lift_fresh(tensor)
    return tensor.view(torch.bfloat16) if narrow else tensor


def outside_dynamo(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function for calls that Dynamo does not compile, with all functions that it calls.

    After a graph break Dynamo tries each frame that runs, those of corejax's tracing among them, and miscompiles some.
    Dynamo takes seconds to import, so this does not import it.
    """
    disabled: list[Callable[..., Any]] = []  # at most one

    @functools.wraps(fun)
    def call(*args: Any) -> Any:
        dynamo = sys.modules.get("torch._dynamo")
        if dynamo is None:
            return fun(*args)
        if not disabled:
            disabled.append(dynamo.disable(fun))
        return disabled[0](*args)

    return call
