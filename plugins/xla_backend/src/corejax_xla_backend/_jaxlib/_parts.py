"""Copies of the parts of a buffer over several CPU devices, where taking it apart would import jax.

Of a buffer that passes for replicated, C++ hands out the first part's memory by DLPack, and it reorders parts without
looking for jax. Such memory is read at once and let go: a buffer that is deleted while it is seen ends the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from corejax.extend import ShapedArray

from ._buffers import Buffer
from ._client import Device
from ._probe import FEATURES, core


def would_import_jax() -> bool:
    """Whether the first buffer that is taken apart imports jax: installed, and not imported yet."""
    return FEATURES.version < (0, 11) and "jax" not in sys.modules and _is_installed()


@cache
def _is_installed() -> bool:
    return find_spec("jax") is not None


class _Seen:
    """Memory for NumPy to look at."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def copied_parts(
    buffer: Buffer,
    shape: tuple[int, ...],
    devices: Sequence[Device],
    wanted: Sequence[int],
    replicated: Callable[..., Any],
) -> list[np.ndarray] | None:
    """The parts on some of a buffer's devices; None where DLPack lacks their type.

    Args:
        buffer: one that has been computed.
        shape: of a part.
        devices: in their order, all of this process.
        wanted: positions of devices.
        replicated: sharding of copies on devices.
    """
    dtype = np.dtype(buffer.aval.dtype)
    if dtype.kind not in "bfiuc" or dtype.isbuiltin != 1:  # of ml_dtypes DLPack knows none
        return None
    aval, found = ShapedArray(shape, dtype), []
    for i in wanted:
        place = replicated((devices[i], *devices[:i], *devices[i + 1 :]))
        moved = core.reorder_shards(buffer, place, core.ArrayCopySemantics.REUSE_INPUT) if i else buffer
        first = moved._rewrap_with_aval_and_sharding(aval, place)
        found.append(np.array(np.from_dlpack(_Seen(core.buffer_to_dlpack_managed_tensor(first, stream=None)))))
    return found
