"""`jax._src.dtypes`."""

from typing import Any as _Any

import numpy as _np

import corejax as _corejax
from corejax.numpy import finfo
from corejax_as_jax.absent import absent_class as _absent_class

DType = _np.dtype
ExtendedDType = _absent_class("ExtendedDType")


def supports_inf(dtype: _Any) -> bool:
    """Return whether the dtype has infinities."""
    return bool(_np.isinf(_np.asarray(_np.inf).astype(dtype).astype(_np.float32)))


def to_complex_dtype(dtype: _Any) -> _Any:
    """Return the complex dtype with parts of a dtype."""
    return _np.result_type(dtype, _np.complex64)


def __getattr__(name: str) -> _Any:
    return getattr(_corejax.dtypes, name)
