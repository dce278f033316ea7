"""`corejax.numpy`: NumPy's names for arrays that can be differentiated, vectorised and compiled.

A list of names; the functions are written in the modules they come from.
"""

from __future__ import annotations

import numpy as _np

from corejax.extend import Array as ndarray
from corejax.extend import dtypes as _dtypes
from corejax_numpy.creation import array as array
from corejax_numpy.creation import asarray as asarray
from corejax_numpy.creation import astype as astype
from corejax_numpy.creation import empty as empty
from corejax_numpy.creation import empty_like as empty_like
from corejax_numpy.creation import full as full
from corejax_numpy.creation import full_like as full_like
from corejax_numpy.creation import ones as ones
from corejax_numpy.creation import ones_like as ones_like
from corejax_numpy.creation import zeros as zeros
from corejax_numpy.creation import zeros_like as zeros_like
from corejax_numpy.cumulative import cumprod as cumprod
from corejax_numpy.cumulative import cumsum as cumsum
from corejax_numpy.cumulative import cumulative_prod as cumulative_prod
from corejax_numpy.cumulative import cumulative_sum as cumulative_sum
from corejax_numpy.elementwise import absolute as abs
from corejax_numpy.elementwise import absolute as absolute
from corejax_numpy.elementwise import add as add
from corejax_numpy.elementwise import bitwise_and as bitwise_and
from corejax_numpy.elementwise import bitwise_invert as bitwise_invert
from corejax_numpy.elementwise import bitwise_invert as bitwise_not
from corejax_numpy.elementwise import bitwise_invert as invert
from corejax_numpy.elementwise import bitwise_or as bitwise_or
from corejax_numpy.elementwise import bitwise_xor as bitwise_xor
from corejax_numpy.elementwise import ceil as ceil
from corejax_numpy.elementwise import clip as clip
from corejax_numpy.elementwise import conjugate as conj
from corejax_numpy.elementwise import conjugate as conjugate
from corejax_numpy.elementwise import cos as cos
from corejax_numpy.elementwise import degrees as degrees
from corejax_numpy.elementwise import degrees as rad2deg
from corejax_numpy.elementwise import divide as divide
from corejax_numpy.elementwise import divide as true_divide
from corejax_numpy.elementwise import divmod as divmod
from corejax_numpy.elementwise import equal as equal
from corejax_numpy.elementwise import exp as exp
from corejax_numpy.elementwise import exp2 as exp2
from corejax_numpy.elementwise import expm1 as expm1
from corejax_numpy.elementwise import float_power as float_power
from corejax_numpy.elementwise import floor as floor
from corejax_numpy.elementwise import floor_divide as floor_divide
from corejax_numpy.elementwise import fmod as fmod
from corejax_numpy.elementwise import greater as greater
from corejax_numpy.elementwise import greater_equal as greater_equal
from corejax_numpy.elementwise import imag as imag
from corejax_numpy.elementwise import isclose as isclose
from corejax_numpy.elementwise import isfinite as isfinite
from corejax_numpy.elementwise import isinf as isinf
from corejax_numpy.elementwise import isnan as isnan
from corejax_numpy.elementwise import less as less
from corejax_numpy.elementwise import less_equal as less_equal
from corejax_numpy.elementwise import log as log
from corejax_numpy.elementwise import log1p as log1p
from corejax_numpy.elementwise import log2 as log2
from corejax_numpy.elementwise import log10 as log10
from corejax_numpy.elementwise import logical_and as logical_and
from corejax_numpy.elementwise import logical_not as logical_not
from corejax_numpy.elementwise import logical_or as logical_or
from corejax_numpy.elementwise import logical_xor as logical_xor
from corejax_numpy.elementwise import maximum as maximum
from corejax_numpy.elementwise import minimum as minimum
from corejax_numpy.elementwise import multiply as multiply
from corejax_numpy.elementwise import negative as negative
from corejax_numpy.elementwise import not_equal as not_equal
from corejax_numpy.elementwise import positive as positive
from corejax_numpy.elementwise import power as pow
from corejax_numpy.elementwise import power as power
from corejax_numpy.elementwise import radians as deg2rad
from corejax_numpy.elementwise import radians as radians
from corejax_numpy.elementwise import real as real
from corejax_numpy.elementwise import reciprocal as reciprocal
from corejax_numpy.elementwise import remainder as mod
from corejax_numpy.elementwise import remainder as remainder
from corejax_numpy.elementwise import sign as sign
from corejax_numpy.elementwise import sin as sin
from corejax_numpy.elementwise import sqrt as sqrt
from corejax_numpy.elementwise import square as square
from corejax_numpy.elementwise import subtract as subtract
from corejax_numpy.elementwise import tan as tan
from corejax_numpy.elementwise import tanh as tanh
from corejax_numpy.elementwise import trunc as fix
from corejax_numpy.elementwise import trunc as trunc
from corejax_numpy.elementwise import where as where
from corejax_numpy.joining import array_split as array_split
from corejax_numpy.joining import column_stack as column_stack
from corejax_numpy.joining import concat as concat
from corejax_numpy.joining import concatenate as concatenate
from corejax_numpy.joining import hstack as hstack
from corejax_numpy.joining import pad as pad
from corejax_numpy.joining import repeat as repeat
from corejax_numpy.joining import roll as roll
from corejax_numpy.joining import split as split
from corejax_numpy.joining import stack as stack
from corejax_numpy.joining import tile as tile
from corejax_numpy.joining import vstack as vstack
from corejax_numpy.manipulation import atleast_1d as atleast_1d
from corejax_numpy.manipulation import atleast_2d as atleast_2d
from corejax_numpy.manipulation import broadcast_arrays as broadcast_arrays
from corejax_numpy.manipulation import broadcast_shapes as broadcast_shapes
from corejax_numpy.manipulation import broadcast_to as broadcast_to
from corejax_numpy.manipulation import expand_dims as expand_dims
from corejax_numpy.manipulation import flip as flip
from corejax_numpy.manipulation import fliplr as fliplr
from corejax_numpy.manipulation import flipud as flipud
from corejax_numpy.manipulation import matrix_transpose as matrix_transpose
from corejax_numpy.manipulation import meshgrid as meshgrid
from corejax_numpy.manipulation import moveaxis as moveaxis
from corejax_numpy.manipulation import ndim as ndim
from corejax_numpy.manipulation import permute_dims as permute_dims
from corejax_numpy.manipulation import ravel as ravel
from corejax_numpy.manipulation import reshape as reshape
from corejax_numpy.manipulation import shape as shape
from corejax_numpy.manipulation import size as size
from corejax_numpy.manipulation import squeeze as squeeze
from corejax_numpy.manipulation import swapaxes as swapaxes
from corejax_numpy.manipulation import transpose as transpose
from corejax_numpy.products import dot as dot
from corejax_numpy.products import einsum as einsum
from corejax_numpy.products import inner as inner
from corejax_numpy.products import matmul as matmul
from corejax_numpy.products import outer as outer
from corejax_numpy.products import tensordot as tensordot
from corejax_numpy.products import trace as trace
from corejax_numpy.products import vdot as vdot
from corejax_numpy.products import vecdot as vecdot
from corejax_numpy.ranges import arange as arange
from corejax_numpy.ranges import eye as eye
from corejax_numpy.ranges import identity as identity
from corejax_numpy.ranges import linspace as linspace
from corejax_numpy.ranges import tri as tri
from corejax_numpy.ranges import tril as tril
from corejax_numpy.ranges import triu as triu
from corejax_numpy.reductions import all as all
from corejax_numpy.reductions import allclose as allclose
from corejax_numpy.reductions import any as any
from corejax_numpy.reductions import argmax as argmax
from corejax_numpy.reductions import argmin as argmin
from corejax_numpy.reductions import array_equal as array_equal
from corejax_numpy.reductions import average as average
from corejax_numpy.reductions import count_nonzero as count_nonzero
from corejax_numpy.reductions import max as amax
from corejax_numpy.reductions import max as max
from corejax_numpy.reductions import mean as mean
from corejax_numpy.reductions import min as amin
from corejax_numpy.reductions import min as min
from corejax_numpy.reductions import prod as prod
from corejax_numpy.reductions import ptp as ptp
from corejax_numpy.reductions import std as std
from corejax_numpy.reductions import sum as sum
from corejax_numpy.reductions import var as var
from corejax_numpy.scalar_types import bfloat16 as bfloat16
from corejax_numpy.scalar_types import bool_ as bool_
from corejax_numpy.scalar_types import complex64 as complex64
from corejax_numpy.scalar_types import complex128 as complex128
from corejax_numpy.scalar_types import float8_e4m3fn as float8_e4m3fn
from corejax_numpy.scalar_types import float8_e5m2 as float8_e5m2
from corejax_numpy.scalar_types import float16 as float16
from corejax_numpy.scalar_types import float32 as float32
from corejax_numpy.scalar_types import float64 as float64
from corejax_numpy.scalar_types import int4 as int4
from corejax_numpy.scalar_types import int8 as int8
from corejax_numpy.scalar_types import int16 as int16
from corejax_numpy.scalar_types import int32 as int32
from corejax_numpy.scalar_types import int64 as int64
from corejax_numpy.scalar_types import uint4 as uint4
from corejax_numpy.scalar_types import uint8 as uint8
from corejax_numpy.scalar_types import uint16 as uint16
from corejax_numpy.scalar_types import uint32 as uint32
from corejax_numpy.scalar_types import uint64 as uint64

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

__all__ = [
    "abs",
    "absolute",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "arange",
    "argmax",
    "argmin",
    "array",
    "array_equal",
    "array_split",
    "asarray",
    "astype",
    "atleast_1d",
    "atleast_2d",
    "average",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "ceil",
    "clip",
    "column_stack",
    "complex64",
    "complex128",
    "complexfloating",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "cos",
    "count_nonzero",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "dot",
    "dtype",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "euler_gamma",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "fix",
    "flip",
    "fliplr",
    "flipud",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floating",
    "floor",
    "floor_divide",
    "fmod",
    "full",
    "full_like",
    "generic",
    "greater",
    "greater_equal",
    "hstack",
    "identity",
    "iinfo",
    "imag",
    "inexact",
    "inf",
    "inner",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "integer",
    "invert",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "issubdtype",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multiply",
    "nan",
    "ndarray",
    "ndim",
    "negative",
    "newaxis",
    "not_equal",
    "number",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "power",
    "prod",
    "promote_types",
    "ptp",
    "rad2deg",
    "radians",
    "ravel",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "shape",
    "sign",
    "signedinteger",
    "sin",
    "size",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "tri",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsignedinteger",
    "var",
    "vdot",
    "vecdot",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
