"""The operator `corejax::call`, which stands for a kernel while `torch.compile` and `torch.export` trace.

It names a program by a key. `torch.library.custom_op` would give it a derivative for `backward` alone: those of
`torch.func` and of forward mode would be zero without an error. So its derivatives and batches are those of
`kernel.apply`, which runs before PyTorch decomposes the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from corejax_to_torch import kernel
from corejax_to_torch.keys import staged


def _run(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    return kernel.run(staged(key, xs), xs)


def _empty(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    return kernel.empty_results(staged(key, xs), xs)


def _apply(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    return kernel.apply(staged(key, xs), xs)


_library = torch.library.Library("corejax", "FRAGMENT")
_library.define("call(Tensor[] xs, str key) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,))
_library.impl("call", _run, "CompositeExplicitAutograd")
_library.impl("call", _apply, "Autograd")
_library.impl("call", _apply, "FuncTorchDynamicLayerFrontMode")  # inside torch.func, before its own rules
torch.library.register_fake("corejax::call", _empty, lib=_library)

# `(xs, key) -> results`: calls the program of a key.
operator: Any = torch.ops.corejax.call.default
