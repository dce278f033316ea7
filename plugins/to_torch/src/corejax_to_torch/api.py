"""`corejax.to_torch`, which imports PyTorch when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive


def to_torch(fun: Primitive | Callable[..., Any], *, as_kernel: bool = False, **params: Any) -> Callable[..., Any]:
    """Convert a corejax primitive or function to a function of PyTorch.

    `backward`, `torch.func` nested to any order, forward mode, `torch.compile` and `torch.export` work on the result.
    Primitives that correspond to operations of PyTorch (aten) become these operations, which run on any device and can
    be fused by PyTorch's compiler. Other primitives run on the CPU, as kernels that corejax compiles, with corejax's
    rules.

    Args:
        fun: a primitive, or a function of arrays.
        as_kernel: whether to run the whole program as a single kernel.
        params: the parameters of the primitive, or keyword arguments of the function that are not arrays.

    Returns:
        A function of tensors. It returns what `fun` does: an array, or a tuple, list or dict of arrays. Its method
        `as_module()` returns it as a module for `torch.nn`.

    Raises:
        ImportError: PyTorch is not installed, or its version is not supported.
        NotImplementedError: when called, if the program has effects, or a kernel gets a tensor that is not on the CPU.
        TypeError: when called, if corejax does not have the dtype of an argument.
    """
    try:
        from corejax_to_torch.to_torch import bridge
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError("to_torch needs PyTorch: pip install 'corejax-to-torch[torch]'") from None
    return bridge(fun, as_kernel, params)
