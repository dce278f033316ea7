"""`dot_general` on the host, by `ndarray.dot` and `np.matmul`, which call BLAS for the dtypes that it has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from corejax.extend import ShapedArray, dtypes
from corejax.extend.speed import HostCode
from corejax_lax_basic._speed import DOT_PRODUCTS, DOT_ROWS, DOT_SECOND, FEW_PRODUCTS, HALVES, LARGE
from corejax_lax_basic.linear.precision import DotAlgorithm, DotAlgorithmPreset, Precision

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

DimensionNumbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]

_Shaped = np.ndarray[Any, Any] | ShapedArray


class Axes(NamedTuple):
    """The axes of one operand, by their role in the product."""

    batch: tuple[int, ...]
    contract: tuple[int, ...]
    free: tuple[int, ...]


def axes_of(dimension_numbers: DimensionNumbers, lhs_ndim: int, rhs_ndim: int) -> tuple[Axes, Axes]:
    """Return the axes of both operands by their roles."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    return (
        Axes(lhs_batch, lhs_contract, tuple(d for d in range(lhs_ndim) if d not in lhs_batch + lhs_contract)),
        Axes(rhs_batch, rhs_contract, tuple(d for d in range(rhs_ndim) if d not in rhs_batch + rhs_contract)),
    )


def result_shape(left: Axes, right: Axes, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of the batch axes, then those of the free axes of both operands."""
    return (*(lhs[d] for d in left.batch + left.free), *(rhs[d] for d in right.free))


def _as_matrices(x: Any, first: tuple[int, ...], second: tuple[int, ...], batch: tuple[int, ...]) -> Any:
    """Return an array as a stack of matrices: the `batch`, `first` and `second` axes are each merged into one."""
    shape = x.shape
    sizes = [math.prod(shape[d] for d in axes) for axes in (batch, first, second)]
    return x.transpose((*batch, *first, *second)).reshape(sizes)


# Dtypes that NumPy sums in; narrower floats are summed in float32, as compilers do, narrower ints in int32.
_DIRECT = frozenset(map(np.dtype, "?bBhHiIlLqQfdFD"))


def sum_dtype(dtype: Any, precision: Any = None) -> Any:
    """Return the dtype in which NumPy adds up products of a dtype."""
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset) and precision.accumulation_type is not None:
        dtype = precision.accumulation_type
    if dtype in _DIRECT:
        return dtype
    return np.dtype(np.float32 if dtypes.is_float(dtype) else np.int32)


def product(
    lhs: Any, rhs: Any, *, dimension_numbers: DimensionNumbers, preferred_element_type: Any, precision: Any = None
) -> Any:
    """Compute `dot_general` of NumPy arrays: the impl rule."""
    (lhs_contract, rhs_contract), (lhs_batch, _) = dimension_numbers
    two = lhs.ndim == rhs.ndim == 2 and len(lhs_contract) == 1 and not lhs_batch
    plain = precision is None or type(precision) is Precision
    if two and plain and lhs.dtype is rhs.dtype is preferred_element_type and lhs.dtype in _FLOATS:
        # The frequent case comes first: a matrix by a matrix, either of which may be transposed.
        return _product(lhs if lhs_contract[0] else lhs.T, rhs.T if rhs_contract[0] else rhs)
    working = sum_dtype(preferred_element_type, precision)
    if isinstance(precision, DotAlgorithm):
        lhs, rhs = lhs.astype(precision.lhs_precision_type), rhs.astype(precision.rhs_precision_type)
    exact = exact_in(lhs, rhs, math.prod(lhs.shape[a] for a in lhs_contract)) if working.kind in "iu" else None
    lhs, rhs = [x.astype(exact or working, copy=False) for x in (lhs, rhs)]
    if not lhs_batch and lhs.ndim and lhs_contract == (lhs.ndim - 1,) and rhs_contract == (0,) and rhs.ndim <= 2:
        out = _product(lhs, rhs)  # the last axis of `lhs` by the first one of `rhs`
    else:
        out = _general_product(lhs, rhs, dimension_numbers)
    return as_integers(out, preferred_element_type) if exact else out.astype(preferred_element_type, copy=False)


def exact_in(lhs: Any, rhs: Any, terms: int) -> np.dtype[Any] | None:
    """Return a float dtype, for which BLAS exists, that holds all sums of integer products exactly.

    None if no such dtype exists, or if there are too few products for the conversions to pay off.
    """
    if lhs.size * rhs.size < FEW_PRODUCTS * max(1, terms):
        return None
    greatest = _magnitude_bound(lhs) * _magnitude_bound(rhs) * terms
    return _SINGLE if greatest <= 1 << 24 else _DOUBLE if greatest <= 1 << 53 else None


def as_integers(x: Any, dtype: np.dtype[Any]) -> Any:
    """Convert whole numbers of the dtype `exact_in`, keeping the low bits: NumPy does not define overflow."""
    return x.astype(np.int32 if x.dtype == _SINGLE else np.int64).astype(dtype, copy=False)


def _magnitude_bound(x: Any) -> int:
    """Return a bound of the absolute values of the elements."""
    if x.itemsize == 1:
        return 1 << (7 if x.dtype.kind == "i" else 8)
    return max(abs(int(x.min())), abs(int(x.max())))


# Dtypes for which `ndarray.dot` takes a third of the time of `np.matmul`. Both give the same bits, except for matrices
# of one row or column that are not contiguous: for these, one calls BLAS for matrices and the other BLAS for vectors.
_FAST = frozenset(map(np.dtype, "fdiIlLqQ"))
_SINGLE, _DOUBLE = map(np.dtype, "fd")
_FLOATS = frozenset(map(np.dtype, "fdFD"))


def _product(lhs: Any, rhs: Any) -> Any:
    """Multiply as `np.matmul`; `rhs` is a vector or a matrix."""
    if (
        lhs.dtype in _FAST
        and lhs.ndim <= 2
        and (_are_proper_matrices(lhs, rhs) or (lhs.flags.c_contiguous and rhs.flags.c_contiguous))
    ):
        return lhs.dot(rhs)
    return np.matmul(lhs, rhs)


def _are_proper_matrices(lhs: _Shaped, rhs: _Shaped) -> bool:
    """Return whether both are matrices and no axis has size 0 or 1."""
    return lhs.ndim == rhs.ndim == 2 and min(*lhs.shape, *rhs.shape) > 1


def prepared(
    avals: Avals, *, dimension_numbers: DimensionNumbers, preferred_element_type: Any, precision: Any = None
) -> HostCode | None:
    """Return code for the products that are one call of `ndarray.dot`."""
    lhs, rhs = avals
    (lhs_contract, rhs_contract), (lhs_batch, _) = dimension_numbers
    if not lhs.dtype is rhs.dtype is sum_dtype(preferred_element_type, precision) is preferred_element_type:
        return None
    if (
        lhs.dtype not in _FAST
        or lhs_batch
        or lhs.ndim not in (1, 2)
        or rhs.ndim not in (1, 2)
        or isinstance(precision, DotAlgorithm)
    ):
        return None
    scalar = lhs.ndim == rhs.ndim == 1
    if lhs_contract != (lhs.ndim - 1,) or rhs_contract != (0,):
        text = "{0}" + ".T" * (lhs_contract == (0,)) + ".dot({1}" + ".T" * (rhs_contract == (1,)) + ")"
        usual = len(lhs_contract) == 1 and _are_proper_matrices(lhs, rhs)
        return HostCode("{out} = " + text) if usual else None
    if _are_proper_matrices(lhs, rhs):
        return HostCode("{out} = {0}.dot({1})")
    text = "{out} = {0}.dot({1}) if {0}.flags.c_contiguous and {1}.flags.c_contiguous else {matmul}({0}, {1})"
    return HostCode(text, scalar=scalar, matmul=np.matmul)


def _general_product(lhs: Any, rhs: Any, dimension_numbers: DimensionNumbers) -> Any:
    left, right = axes_of(dimension_numbers, lhs.ndim, rhs.ndim)
    product = np.matmul(
        _as_matrices(lhs, left.free, left.contract, left.batch),
        _as_matrices(rhs, right.contract, right.free, right.batch),
    )
    return product.reshape(result_shape(left, right, lhs.shape, rhs.shape))


def takes_long(avals: Avals, *, dimension_numbers: DimensionNumbers, **params: Any) -> bool:
    """Return whether XLA is faster: NumPy has BLAS for float32, float64 and complex numbers only.

    XLA takes half of the time for large float32 products, but ten times as long if one operand has only a few columns.
    """
    lhs, rhs = avals
    if rhs.dtype in _WITHOUT_BLAS:
        return True
    (contract, _), (batch, _) = dimension_numbers
    summed, batches = (math.prod(lhs.shape[a] for a in axes) for axes in (contract, batch))
    rows, columns = (x.size // max(1, summed * batches) for x in avals)
    large = batches * rows * columns >= LARGE or (min(rows, columns) >= DOT_ROWS and lhs.size * columns >= DOT_PRODUCTS)
    return rhs.dtype == np.float32 and rhs.size >= DOT_SECOND and large


_WITHOUT_BLAS = frozenset(map(dtypes.dtype, (*HALVES, "int32", "int64", "uint32", "uint64")))
