"""Copies of the parts of a buffer over several CPU devices, where taking it apart would import jax.

Of a buffer that passes for replicated, C++ hands out the first part's memory by DLPack, and it reorders parts without
looking for jax. Such memory is read at once and let go: a buffer that is deleted while it is seen ends the process.
"""

from __future__ import annotations

import ctypes
import math
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


class _Tensor(ctypes.Structure):
    """DLPack's `DLTensor`, with which what is in a capsule begins (https://dmlc.github.io/dlpack/latest/c_api.html)."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _copied(capsule: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """What a capsule has, in row-major order; None where its elements are packed. NumPy reads no type of ml_dtypes."""
    tensor = ctypes.cast(_pointer_of(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    if tensor.bits * tensor.lanes != 8 * dtype.itemsize:
        return None
    nbytes = math.prod(shape) * dtype.itemsize
    memory = (ctypes.c_char * nbytes).from_address(tensor.data + tensor.byte_offset)
    return np.frombuffer(memory, np.uint8).copy().view(dtype).reshape(shape)


def copied_parts(
    buffer: Buffer,
    shape: tuple[int, ...],
    devices: Sequence[Device],
    wanted: Sequence[int],
    replicated: Callable[..., Any],
) -> list[np.ndarray] | None:
    """Copy the parts of a computed buffer on the `wanted` of its devices, all of this process.

    `shape` is that of a part, `replicated` gives the sharding of copies on devices. The result is None if DLPack lacks
    their type.
    """
    dtype = np.dtype(buffer.aval.dtype)
    aval, found = ShapedArray(shape, dtype), []
    for i in wanted:
        place = replicated((devices[i], *devices[:i], *devices[i + 1 :]))
        moved = core.reorder_shards(buffer, place, core.ArrayCopySemantics.REUSE_INPUT) if i else buffer
        first = moved._rewrap_with_aval_and_sharding(aval, place)
        try:
            part = _copied(core.buffer_to_dlpack_managed_tensor(first, stream=None), shape, dtype)
        except Exception:  # of jaxlib's own, for a type that DLPack does not have
            return None
        if part is None:
            return None
        found.append(part)
    return found
