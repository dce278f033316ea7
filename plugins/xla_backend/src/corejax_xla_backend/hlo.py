"""Public: what a translation means, for those who write and check translation rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import tree
from corejax_xla_backend import _jaxlib
from corejax_xla_backend.stages import Lowered


def reference_eval(lowered: Lowered, *args: Any) -> list[np.ndarray[Any, Any]]:
    """The results of a lowered program by StableHLO's reference interpreter: slow, simple, independent of XLA.

    Args:
        lowered: from `jit(f).lower(*args)`.
        args: the arguments, concrete, of the types that it was lowered for.

    Returns:
        The results as flat list of arrays.

    Raises:
        TypeError: the arguments do not fit.
        RuntimeError: the interpreter does not implement an operation. (Some it cannot even refuse, and ends
            the process: custom calls, empty contractions, integer division by zero.)
    """
    leaves = [*lowered.consts, *tree.tree_leaves((args, {}))]
    used = [np.asarray(x) for x, keep in zip(leaves, lowered.kept, strict=True) if keep]
    return _jaxlib.reference_eval(lowered.as_text(pretty=False), used)  # type: ignore[no-any-return]
