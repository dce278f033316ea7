"""`corejax.numpy`: NumPy's names for arrays that can be differentiated, vectorised and compiled.

A table of names; the functions are written in the modules that they stand beside.
"""

from __future__ import annotations

import numpy as _np

from corejax.extend import Array as ndarray
from corejax.extend import dtypes as _dtypes
from corejax_numpy._namespace import lazy_names as _lazy_names

pi: float = _np.pi
e: float = _np.e
euler_gamma: float = _np.euler_gamma
inf: float = _np.inf
nan: float = _np.nan
newaxis = None

dtype = _np.dtype
finfo = _dtypes.finfo
iinfo = _dtypes.iinfo
issubdtype = _dtypes.issubdtype
promote_types = _dtypes.promote_types
result_type = _dtypes.result_type

generic = _np.generic
number = _np.number
integer = _np.integer
signedinteger = _np.signedinteger
unsignedinteger = _np.unsignedinteger
inexact = _np.inexact
floating = _np.floating
complexfloating = _np.complexfloating

_MODULES = {
    "creation": """
        array asarray astype empty empty_like full full_like ones ones_like zeros zeros_like
    """,
    "cumulative": """
        cumprod cumsum cumulative_prod cumulative_sum
    """,
    "elementwise": """
        abs=absolute absolute add bitwise_and bitwise_invert bitwise_not=bitwise_invert bitwise_or bitwise_xor
        ceil clip conj=conjugate conjugate cos deg2rad=radians degrees divide divmod equal exp exp2 expm1
        fix=trunc float_power floor floor_divide fmod greater greater_equal imag invert=bitwise_invert isclose
        isfinite isinf isnan less less_equal log log10 log1p log2 logical_and logical_not logical_or logical_xor
        maximum minimum mod=remainder multiply negative not_equal positive pow=power power rad2deg=degrees
        radians real reciprocal remainder sign sin sqrt square subtract tan tanh true_divide=divide trunc where
    """,
    "joining": """
        array_split column_stack concat concatenate hstack pad repeat roll split stack tile vstack
    """,
    "manipulation": """
        atleast_1d atleast_2d broadcast_arrays broadcast_shapes broadcast_to expand_dims flip fliplr flipud
        matrix_transpose meshgrid moveaxis ndim permute_dims ravel reshape shape size squeeze swapaxes transpose
    """,
    "products": """
        dot einsum inner matmul outer tensordot trace vdot vecdot
    """,
    "ranges": """
        arange eye identity linspace tri tril triu
    """,
    "reductions": """
        all allclose amax=max amin=min any argmax argmin array_equal average count_nonzero max mean min prod ptp
        std sum var
    """,
    "scalar_types": """
        bfloat16 bool_ complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int4
        int64 int8 uint16 uint32 uint4 uint64 uint8
    """,
    "signal": """
        convolve correlate
    """,
}

__getattr__, __dir__, __all__ = _lazy_names("numpy", _MODULES, globals())
