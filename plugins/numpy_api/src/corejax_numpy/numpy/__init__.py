"""`corejax.numpy`: NumPy's functions for arrays that can be differentiated, vectorised and compiled.

This module is a table of names. The modules beside it define the functions, and are imported on first use.
"""

from __future__ import annotations

import numpy as _np
from numpy.exceptions import ComplexWarning as _ComplexWarning

from corejax.extend import Array as ndarray
from corejax.extend import dtypes as _dtypes
from corejax_numpy._namespace import lazy_names as _lazy_names

pi: float = _np.pi
e: float = _np.e
euler_gamma: float = _np.euler_gamma
inf: float = _np.inf
nan: float = _np.nan
newaxis = None
__array_api_version__ = "2024.12"

dtype = _np.dtype
promote_types = _dtypes.promote_types

generic = _np.generic
number = _np.number
integer = _np.integer
signedinteger = _np.signedinteger
unsignedinteger = _np.unsignedinteger
inexact = _np.inexact
floating = _np.floating
complexfloating = _np.complexfloating
flexible = _np.flexible
character = _np.character
object_ = _np.object_
ComplexWarning = _ComplexWarning

_MODULES = {
    "array_api": """
        __array_namespace_info__=namespace_info
    """,
    "bits": """
        packbits unpackbits
    """,
    "choosing": """
        piecewise select
    """,
    "creation": """
        array asarray astype copy empty empty_like full full_like ones ones_like zeros zeros_like
    """,
    "cumulative": """
        cumprod cumsum cumulative_prod cumulative_sum nancumprod nancumsum
    """,
    "devices": """
        from_dlpack
    """,
    "diagonals": """
        diag diagflat diagonal trace
    """,
    "differences": """
        diff ediff1d gradient trapezoid unwrap
    """,
    "dtype_queries": """
        can_cast finfo iinfo isdtype issubdtype result_type
    """,
    "editing": """
        delete insert trim_zeros
    """,
    "einsums": """
        einsum einsum_path
    """,
    "elementwise": """
        abs=absolute absolute bitwise_invert bitwise_not=bitwise_invert ceil clip conj=conjugate conjugate cos
        deg2rad=radians degrees divide divmod equal exp expm1 fix=trunc float_power floor floor_divide fmod
        greater greater_equal imag invert=bitwise_invert isclose isfinite isinf isnan less less_equal log log10
        log1p log2 logical_not mod=remainder not_equal positive pow=power power rad2deg=degrees radians real
        reciprocal remainder sign sin sqrt square tan tanh true_divide=divide trunc
    """,
    "files": """
        frombuffer fromfile fromiter fromstring load save savez
    """,
    "floating": """
        around=round copysign fabs fmax fmin frexp heaviside isneginf isposinf ldexp modf nan_to_num nextafter
        rint round signbit spacing
    """,
    "histograms": """
        bincount histogram histogram2d histogram_bin_edges histogramdd
    """,
    "index_tricks": """
        c_ diag_indices diag_indices_from index_exp indices ix_ mgrid ogrid r_ ravel_multi_index s_ tril_indices
        tril_indices_from triu_indices triu_indices_from unravel_index
    """,
    "indexing": """
        choose fill_diagonal place put put_along_axis take take_along_axis
    """,
    "integers": """
        bitwise_count bitwise_left_shift=left_shift bitwise_right_shift=right_shift gcd lcm left_shift
        right_shift
    """,
    "interpolation": """
        interp
    """,
    "joining": """
        append array_split block column_stack concat concatenate dsplit dstack hsplit hstack split stack unstack
        vsplit vstack
    """,
    "manipulation": """
        atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims flip fliplr
        flipud matrix_transpose meshgrid moveaxis ndim permute_dims ravel reshape rollaxis rot90 shape size
        squeeze swapaxes transpose
    """,
    "mapping": """
        apply_along_axis apply_over_axes fromfunction vectorize
    """,
    "moments": """
        average mean std var
    """,
    "nan_functions": """
        nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar
    """,
    "nonzero": """
        argwhere compress extract flatnonzero mask_indices nonzero where
    """,
    "padding": """
        pad
    """,
    "polynomials": """
        poly polyadd polyder polydiv polyint polymul polysub polyval vander
    """,
    "printing": """
        array_repr array_str get_printoptions printoptions set_printoptions
    """,
    "products": """
        cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat
    """,
    "quantiles": """
        median nanmedian nanpercentile nanquantile percentile quantile
    """,
    "queries": """
        allclose array_equal array_equiv iscomplex iscomplexobj isreal isrealobj isscalar iterable
    """,
    "ranges": """
        arange eye geomspace identity linspace logspace tri tril triu
    """,
    "reductions": """
        all amax=max amin=min any argmax argmin count_nonzero max min minmax prod ptp sum
    """,
    "repeating": """
        repeat resize roll tile
    """,
    "scalar_types": """
        bfloat16 bool bool_ cdouble complex128 complex64 complex_ csingle double float16 float32 float4_e2m1fn
        float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn
        float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ int1 int16 int2 int32 int4 int64 int8
        int_ single uint uint1 uint16 uint2 uint32 uint4 uint64 uint8
    """,
    "searching": """
        digitize searchsorted
    """,
    "sets": """
        intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values
    """,
    "signal": """
        convolve correlate
    """,
    "smooth": """
        angle hypot i0 sinc
    """,
    "sorting": """
        argpartition argsort lexsort partition sort sort_complex top_k
    """,
    "statistics": """
        corrcoef cov
    """,
    "trigonometry": """
        acos=arccos acosh=arccosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin=arcsin asinh=arcsinh
        atan2=arctan2 atan=arctan atanh=arctanh cbrt cosh exp2 sinh
    """,
    "ufunc_table": """
        add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or logical_xor maximum
        minimum multiply negative subtract
    """,
    "ufuncs": """
        frompyfunc ufunc
    """,
    "window_functions": """
        bartlett blackman hamming hanning kaiser
    """,
}

# Functions of many primitives: an eager call is traced once and then runs as one cached program. A function that has to
# look at values (for indices out of bounds, or for the number of results) cannot be traced, and is not in this list.
_COMPOSITE = """
    all allclose amax amin angle any append arange argmax argmin argpartition argsort array_equal array_equiv
    array_split atleast_2d atleast_3d average bartlett bitwise_count blackman block broadcast_arrays clip
    column_stack concat concatenate convolve copysign corrcoef correlate count_nonzero cov cross cumprod cumsum
    cumulative_prod cumulative_sum deg2rad degrees diag diag_indices diag_indices_from diagflat diagonal diff
    divmod dot dsplit dstack ediff1d einsum empty empty_like expand_dims eye fabs fix flip fliplr flipud
    float_power floor_divide fmax fmin fmod frexp full_like gcd geomspace gradient hamming hanning heaviside
    hsplit hstack hypot i0 identity imag indices inner isclose iscomplex isinf isneginf isposinf isreal ix_
    kaiser kron lcm ldexp left_shift lexsort linspace log10 log2 logspace matmul matrix_transpose matvec max
    mean median meshgrid min minmax mod modf moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax
    nanmean nanmedian nanmin nanprod nanstd nansum nanvar nextafter ones ones_like outer packbits pad partition
    permute_dims poly polyadd polyder polyint polymul polysub polyval pow power prod ptp put_along_axis rad2deg
    radians remainder resize right_shift roll rollaxis rot90 round select signbit sinc sort sort_complex spacing
    split std sum swapaxes tensordot tile top_k trace trapezoid tri tril tril_indices tril_indices_from triu
    triu_indices triu_indices_from trunc unpackbits unravel_index unwrap vander var vdot vecdot vecmat vsplit
    vstack where zeros zeros_like
"""

# NumPy's ufunc returns the same bits, also for special values (tests/numpy_api/test_exact_ufuncs.py).
_UFUNCS = """
    copysign frexp gcd heaviside lcm ldexp left_shift mod:fd remainder:fd right_shift signbit trunc
"""

# A Python float among the arguments influences only the promotion, so its value is not part of the cache key.
_FLOAT_OPERANDS = """
    allclose average clip copysign divmod ediff1d float_power floor_divide fmax fmin fmod full_like heaviside hypot
    isclose mod nan_to_num nextafter pad polyval remainder select trapezoid where
"""

__getattr__, __dir__, __all__ = _lazy_names("numpy", _MODULES, globals(), _COMPOSITE, _UFUNCS, _FLOAT_OPERANDS)
