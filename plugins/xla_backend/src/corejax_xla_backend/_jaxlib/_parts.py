"""Copy the parts of a buffer over several CPU devices without `ArrayImpl._arrays`, which would import jax.

C++ exports the first part of a buffer by DLPack if the buffer's sharding claims to be replicated, and it can reorder
parts without importing jax. So each part in turn becomes the first one and is exported. The memory is copied and
released at once: deleting a buffer while it is exported aborts the process.
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

from ._classes import Buffer, Device
from ._probe import FEATURES, core


def would_import_jax() -> bool:
    """Return whether splitting a buffer into its parts would import jax: it is installed and not imported yet."""
    return FEATURES.version < (0, 11) and "jax" not in sys.modules and _is_installed()


@cache
def _is_installed() -> bool:
    return find_spec("jax") is not None


class _Tensor(ctypes.Structure):
    """DLPack's `DLTensor`, the first field of a capsule's struct (https://dmlc.github.io/dlpack/latest/c_api.html)."""

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
    """Copy a capsule's row-major elements; return None if they are packed.

    NumPy's own `from_dlpack` reads no dtype of ml_dtypes.
    """
    tensor = ctypes.cast(_pointer_of(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    if tensor.bits * tensor.lanes != 8 * dtype.itemsize:
        return None
    nbytes = math.prod(shape) * dtype.itemsize
    memory: Any = (ctypes.c_char * nbytes).from_address(tensor.data + tensor.byte_offset)
    elements: np.ndarray[Any, Any] = np.frombuffer(memory, np.uint8).copy().view(dtype).reshape(shape)
    return elements


def copied_parts(
    buffer: Buffer,
    shape: tuple[int, ...],
    devices: Sequence[Device],
    wanted: Sequence[int],
    replicated: Callable[..., Any],
) -> list[np.ndarray] | None:
    """Copy parts of a computed buffer; all of its devices must belong to this process.

    Args:
        buffer: the buffer over several devices.
        shape: the shape of a part.
        devices: the buffer's devices, in order.
        wanted: indices of the parts to copy.
        replicated: function from devices to the sharding of copies on them.

    Returns:
        None if DLPack lacks the dtype.
    """
    dtype = np.dtype(buffer.aval.dtype)
    aval, parts = ShapedArray(shape, dtype), []
    for i in wanted:
        place = replicated((devices[i], *devices[:i], *devices[i + 1 :]))
        moved = core.reorder_shards(buffer, place, core.ArrayCopySemantics.REUSE_INPUT) if i else buffer
        first = moved._rewrap_with_aval_and_sharding(aval, place)
        try:
            part = _copied(core.buffer_to_dlpack_managed_tensor(first, stream=None), shape, dtype)
        except Exception:  # jaxlib's error for a dtype that DLPack lacks
            return None
        if part is None:
            return None
        parts.append(part)
    return parts
