"""`corejax.numpy` beside `jax.numpy`: names and signatures; what is still missing is listed."""

from __future__ import annotations

import numpy as np
import pytest

import corejax.numpy as jnp
from tests.signatures import difference, names_in, public

# What is not here: what needs eigenvalues, classes without meaning.
ELSEWHERE = {"roots", "object_", "character", "flexible"}

# What is still to be written; a name is struck out when it is there.
MISSING = names_in(
    """
    ComplexWarning acos acosh angle append apply_along_axis apply_over_axes arccos arccosh arcsin arcsinh arctan arctan2
    arctanh argwhere around array_equiv array_repr array_str asin asinh atan atan2 atanh atleast_3d bartlett bincount
    bitwise_count bitwise_left_shift bitwise_right_shift blackman block bool c_ can_cast cbrt cdouble choose complex_
    compress convolve copy copysign corrcoef correlate cosh cov cross csingle delete diag diag_indices
    diag_indices_from diagflat diagonal diff double dsplit dstack ediff1d einsum_path extract fabs fill_diagonal
    flatnonzero float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fnuz
    float8_e5m2fnuz float8_e8m0fnu float_ fmax fmin frexp from_dlpack frombuffer fromfile fromfunction fromiter
    frompyfunc fromstring gcd geomspace get_printoptions gradient hamming hanning heaviside histogram histogram2d
    histogram_bin_edges histogramdd hsplit hypot i0 index_exp indices insert int1 int2 int_ interp iscomplex
    iscomplexobj isdtype isneginf isposinf isreal isrealobj isscalar iterable ix_ kaiser kron lcm ldexp left_shift load
    logaddexp logaddexp2 logspace mask_indices matvec mgrid modf nan_to_num nanargmax nanargmin nancumprod nancumsum
    nanmax nanmean nanmin nanprod nanstd nansum nanvar nextafter nonzero ogrid packbits piecewise place poly polyadd
    polyder polydiv polyfit polyint polymul polysub polyval printoptions put put_along_axis r_ ravel_multi_index resize
    right_shift rint rollaxis rot90 round s_ save savez select set_printoptions signbit sinc single sinh spacing take
    take_along_axis trapezoid tril_indices tril_indices_from trim_zeros triu_indices triu_indices_from ufunc uint uint1
    uint2 unpackbits unravel_index unstack unwrap vander vecmat vectorize vsplit
    """
)

# Functions whose arguments are still to become jax's; a name is struck out when they are.
TO_CHANGE = names_in(
    """
    all amax amin any arange argmax argmin array_equal asarray astype average clip cumprod cumsum divide divmod empty
    empty_like eye finfo floor_divide fmod full full_like iinfo imag issubdtype linspace max mean min mod ones ones_like
    outer pow power prod ptp real remainder repeat stack std sum trace true_divide trunc var where zeros zeros_like
    """
)


def test_every_name_is_there() -> None:
    theirs = pytest.importorskip("jax").numpy
    absent = {name for name in public(theirs) if not hasattr(jnp, name)}
    assert not absent - ELSEWHERE - MISSING


def test_signatures_are_jaxs() -> None:
    theirs = pytest.importorskip("jax").numpy
    found = {}
    for name in public(theirs):
        ours = getattr(jnp, name, None)
        if ours is None or isinstance(ours, type | np.dtype) or name in TO_CHANGE or hasattr(ours, "dtype"):
            continue
        found[name] = difference(ours, getattr(theirs, name))
    assert not {name: text for name, text in found.items() if text}
