"""PyTorch as a `Framework` for the check `torch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from corejax_testing import Framework, NotApplicable
from corejax_to_torch.api import to_torch
from corejax_to_torch.tensors import TO_NUMPY, to_array

Function = Callable[..., Sequence[Any]]


def _array(x: np.ndarray[Any, Any]) -> torch.Tensor:
    if x.dtype not in TO_NUMPY.values():
        raise NotApplicable(f"PyTorch has no dtype {x.dtype}")
    x = np.array(x)  # a writable copy
    if x.dtype == TO_NUMPY[torch.bfloat16]:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def _numpy(x: torch.Tensor) -> np.ndarray[Any, Any]:
    return to_array(x)


def _compiled(fun: Function) -> Function:
    torch.compiler.reset()  # Dynamo limits how often it compiles one code object
    compiled: Function = torch.compile(lambda *xs: tuple(fun(*xs)), fullgraph=True, backend="aot_eager")
    return compiled


def _vmap(fun: Function) -> Function:
    batched: Function = torch.func.vmap(lambda *xs: tuple(fun(*xs)))
    return batched


def _scan(fun: Function) -> Function:
    def scanned(*batch: torch.Tensor) -> list[torch.Tensor]:
        rows = [fun(*row) for row in zip(*batch, strict=True)]
        return [torch.stack(column) for column in zip(*rows, strict=True)]

    return scanned


def _jvp(fun: Function, xs: list[Any], tangents: list[Any]) -> Any:
    return torch.func.jvp(lambda *ys: tuple(fun(*ys)), tuple(xs), tuple(tangents))[1]


def _vjp(fun: Function, xs: list[Any], cotangents: list[Any]) -> Any:
    """Pull cotangents back in corejax's convention, in which they are the conjugates of PyTorch's."""
    pullback = torch.func.vjp(lambda *ys: tuple(fun(*ys)), *xs)[1]
    return [_conj(g) for g in pullback(tuple(map(_conj, cotangents)))]


def _conj(x: torch.Tensor) -> torch.Tensor:
    return x.conj_physical() if x.dtype.is_complex else x


def framework(as_kernel: bool) -> Framework:
    """Return PyTorch as a `Framework`, which runs a program as operations or as a kernel."""
    return Framework(
        name="torch, as a kernel" if as_kernel else "torch",
        bridge=lambda fun: to_torch(fun, as_kernel=as_kernel),
        array=_array,
        numpy=_numpy,
        maps={"jit": _compiled, "vmap": _vmap, "scan": _scan},
        derivatives={"jvp": _jvp, "grad": _vjp},
    )
