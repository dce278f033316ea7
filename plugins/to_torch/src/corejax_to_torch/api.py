"""`corejax.to_torch`, which imports PyTorch when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive


def to_torch(fun: Primitive | Callable[..., Any], *, as_kernel: bool = False, **params: Any) -> Callable[..., Any]:
    """Make a corejax primitive or function a function of PyTorch.

    `backward`, `torch.func` nested to any order, forward mode, `torch.compile` and `torch.export` work on the result. A
    program becomes operations of PyTorch (aten) as far as there are some, which run on any device
    and which the compiler fuses. Other primitives run as kernels that corejax compiles, on the CPU, with its own rules.

    Args:
        fun: a primitive, or a function of arrays.
        as_kernel: whether the whole program is one kernel.
        params: the parameters of the primitive, or keyword arguments of the function that are not arrays.

    Returns:
        A function of tensors. It returns what `fun` does: an array, or a tuple, list or dict of arrays. Its method
        `as_module()` returns it as a module for `torch.nn`.

    Raises:
        ImportError: PyTorch is not installed, or this version of it has not been tried.
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
