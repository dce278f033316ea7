"""The check `torch` of `corejax verify`. Imported by corejax-testing only, with torch or without."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from corejax_testing import Call, Check, NotApplicable, check_in_framework


def check_torch(call: Call, rng: np.random.Generator) -> None:
    """Check that a primitive has the same results in PyTorch: as operations or a kernel, compiled, under torch.func."""
    if find_spec("torch") is None:
        raise NotApplicable("torch is not installed")
    if not call.values:
        raise NotApplicable("it has no operands")
    from corejax_to_torch.framework import framework

    check_in_framework(framework(as_kernel=False), call, rng)
    check_in_framework(framework(as_kernel=True), call, rng)


TORCH = Check("torch", check_torch, limit=2, optimised=True, quick=1)
