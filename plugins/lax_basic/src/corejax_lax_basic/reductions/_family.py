"""Rows of reductions: over axes, to an index, along an axis; each is computed by a NumPy ufunc or function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, dtypes, get_aval, impl_rules, vmap_rules
from corejax.extend.speed import HostCode
from corejax_lax_basic import _speed
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import canonical_axes, canonical_axis, integer, ints
from corejax_lax_basic._base.derivatives import Derivative, Function
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.rows import defined
from corejax_lax_basic._base.small_ints import SMALL_INT_BYTES
from corejax_lax_basic._base.type_rules import INTEGRAL, ORDERED, Kinds, check_kind
from corejax_lax_basic.reductions import _row_sums

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__corejax_registers_for_caller__ = True  # a row's provenance is its own line, not one of this file

Axes = tuple[int, ...]


# -- how two elements are combined ---------------------------------------------------------------------------------


def zero(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return 0 of a dtype."""
    return np.zeros((), dtype)


def one(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return 1 of a dtype."""
    return np.ones((), dtype)


def all_bits(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the integer or bool of a dtype with all bits set."""
    if dtypes.is_bool(dtype):
        return np.array(True)
    return np.array(int(dtypes.iinfo(dtype).max) if dtypes.is_unsigned(dtype) else -1, dtype)


def least(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the least value of a dtype."""
    return _extreme(dtype, -1)


def greatest(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the greatest value of a dtype."""
    return _extreme(dtype, 1)


def _extreme(dtype: np.dtype[Any], sign: int) -> np.ndarray[Any, Any]:
    if dtypes.is_bool(dtype):
        return np.array(sign > 0, dtype)
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return np.array(int(info.min) if sign < 0 else int(info.max), dtype)
    infinite = np.array(sign * np.inf, dtype)
    if np.isinf(infinite):
        return infinite
    info = dtypes.finfo(dtype)  # the dtype has no infinities
    return np.array(info.min if sign < 0 else info.max, dtype)


@dataclass(frozen=True)
class Fold:
    """A way to combine two elements.

    Attributes:
        ufunc: the NumPy ufunc that combines them.
        stablehlo: the StableHLO operation that combines them; None if `translations` has a rule.
        neutral: maps a dtype to the result of a reduction of no elements.
        wide: whether combining rounds, so that 16-bit floats are accumulated in float32.
        large: `reduce(x, axes, dtype)` for large arrays, if there is a faster one than the ufunc's.
    """

    ufunc: np.ufunc
    stablehlo: str | None
    neutral: Callable[[np.dtype[Any]], np.ndarray[Any, Any]]
    wide: bool = False
    large: Function | None = None

    def width(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype for accumulation on the host; narrow floats are widened also for extrema, for speed."""
        if dtype in NARROW_FLOATS:
            return np.dtype(np.float32)
        return SMALL_INT_BYTES.get(dtype, dtype)

    def reduce(self, size: int) -> Function:
        """Return `reduce(x, axes, dtype)` for arrays of a size."""
        return self.ufunc.reduce if self.large is None or size < _speed.ROW_SUMS else self.large

    def on_host(self, impl: Function) -> Function:
        """Return an impl rule that accumulates in the dtype of `width`.

        `impl(x, neutral, **params)` computes it; `neutral()` is the neutral element. Integers of less than 8 bits are
        accumulated as 8-bit ones, for which NumPy has every function.
        """
        width = self.width

        @functools.wraps(impl)
        def on_host(x: Any, **params: Any) -> Any:
            dtype = x.dtype
            wide = width(dtype)
            if wide is dtype:
                return impl(x, lambda: self.neutral(dtype), **params)
            out = impl(x.astype(wide), lambda: self.neutral(dtype).astype(wide), **params)
            return np.asarray(out).astype(dtype)

        return on_host


ADD = Fold(np.add, "add", zero, wide=True, large=_row_sums.sums)
MULTIPLY = Fold(np.multiply, "multiply", one, wide=True)
MAXIMUM = Fold(np.maximum, "maximum", least)
MINIMUM = Fold(np.minimum, "minimum", greatest)
AND = Fold(np.bitwise_and, "and", all_bits)
OR = Fold(np.bitwise_or, "or", zero)
XOR = Fold(np.bitwise_xor, "xor", zero)

# The primitives of rows, for translations.
REDUCTIONS: dict[Primitive, Fold] = {}
CUMULATIVE: dict[Primitive, Fold] = {}


# -- over axes -----------------------------------------------------------------------------------------------------


def reduced_shape(name: str, x: ShapedArray, axes: Axes) -> tuple[int, ...]:
    """Return the shape of a reduction over axes.

    Raises:
        ValueError: the axes are not distinct axes of the operand.
    """
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ValueError(
            f"{name}: axes {axes} are not distinct axes of {x.str_short()}, which has {x.ndim}; "
            "they count from the front"
        )
    return tuple(d for i, d in enumerate(x.shape) if i not in axes)


def _shift_axes_rule(primitive: Primitive) -> Function:
    """Return the vmap rule of a reduction, which shifts the axes to make room for the batch axis."""

    def vmap(axis_size: int, vals: Any, dims: Any, *, axes: Axes, **params: Any) -> Any:
        (x,), (d,) = vals, dims
        moved = tuple(a + (a >= d) for a in axes)
        return primitive.bind(x, axes=moved, **params), d - sum(a < d for a in moved)

    vmap.__name__ = f"{primitive.name}_vmap"
    return vmap


def reduction(
    name: str,
    fold: Fold,
    accepts: Kinds,
    derivative: Derivative,
    doc: str,
    linear_in: tuple[int, ...] = (),
) -> tuple[Function, Primitive]:
    """Define a reduction over axes: a row in the table.

    Args:
        name: name of the primitive.
        fold: how two elements are combined.
        accepts: the kinds of dtypes that it accepts.
        derivative: registers its derivative, see `derivatives`.
        doc: docstring of the function and the primitive.
        linear_in: (0,) if the reduction is linear.

    Returns:
        The function and the primitive.
    """

    def impl(x: Any, neutral: Function, *, axes: Axes) -> Any:
        if x.size:
            return fold.reduce(x.size)(x, axes, x.dtype)  # NumPy parses positional arguments faster than keywords
        return fold.ufunc.reduce(x, axis=axes, dtype=x.dtype, initial=neutral()[()])

    @takes(name, 1)
    def abstract_eval(x: ShapedArray, *, axes: Axes) -> ShapedArray:
        check_kind(name, x, accepts)
        return ShapedArray(reduced_shape(name, x, axes), x.dtype, x.weak_type)

    def function(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Any:
        over = ints(axes, f"{name}: axes")
        if accepts is INTEGRAL:  # as in JAX, bitwise reductions alone count negative axes from the end
            over = canonical_axes(over, get_aval(operand).ndim, f"{name}: axis")
        out = primitive.bind(operand, axes=tuple(sorted(over)))
        return place(name, out, out_sharding)

    tags = ("reduction",) if fold.wide else ("reduction", "exact")
    primitive = Primitive(name, abstract_eval=abstract_eval, linear_in=linear_in, tags=tags, doc=doc)
    impl_rules.register(
        primitive, fold.on_host(impl), prepared=functools.partial(_prepared, fold), large=_speed.by_operand(name)
    )
    vmap_rules.register(primitive, _shift_axes_rule(primitive))
    derivative(primitive)
    REDUCTIONS[primitive] = fold
    return defined(function, primitive)


def _prepared(fold: Fold, avals: Avals, *, axes: Axes) -> HostCode | None:
    """Return the impl rule of a reduction for a type of its operand, as lines of Python."""
    [x] = avals
    if not x.size or not axes or fold.width(x.dtype) is not x.dtype or x.dtype.kind not in "biufc":
        return None
    whole = len(axes) == x.ndim
    if whole and x.dtype is dtypes.bool_ and fold in (AND, OR):
        wanted = f"== {x.size}" if fold is AND else "!= 0"
        return HostCode(
            f"{{out}} = {{true}} if {{count}}({{0}}) {wanted} else {{false}}",
            scalar=True,
            true=np.True_,
            false=np.False_,
            count=np.count_nonzero,
        )
    over = None if whole else axes[0] if len(axes) == 1 else axes
    code = "{out} = {reduce}({0}, {over}, {dtype})"
    return HostCode(code, scalar=whole, reduce=fold.reduce(x.size), over=over, dtype=x.dtype)


# -- to an index ---------------------------------------------------------------------------------------------------


def index_reduction(
    name: str, find: Callable[..., Any], derivative: Derivative, doc: str
) -> tuple[Function, Primitive]:
    """Define the index of an element along an axis, found by the NumPy function `find`: a row in the table."""

    def impl(x: Any, *, axes: Axes, index_dtype: np.dtype[Any]) -> Any:
        if x.dtype in NARROW_FLOATS:
            x = x.astype(np.float32)
        return np.asarray(find(x, axis=axes[0])).astype(index_dtype)

    def prepared(avals: Avals, *, axes: Axes, index_dtype: np.dtype[Any]) -> Any:
        [x] = avals
        if x.dtype.kind not in "biuf" or x.dtype in NARROW_FLOATS or index_dtype.kind not in "iu":
            return None
        text = f"{{0}}.{find.__name__}({axes[0]})"
        if x.ndim == 1:
            return HostCode(f"{{out}} = {{to}}({text})", scalar=True, to=index_dtype.type)
        return HostCode(f"{{out}} = {text}.astype({{to}})", to=index_dtype)

    @takes(name, 1)
    def abstract_eval(x: ShapedArray, *, axes: Axes, index_dtype: np.dtype[Any]) -> ShapedArray:
        check_kind(name, x, ORDERED)
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"{name}: index_dtype must be an integer type, got {np.dtype(index_dtype).name}")
        if len(axes) != 1:
            raise ValueError(f"{name}: takes one axis, got axes {axes}")
        if not 0 <= axes[0] < x.ndim:
            raise ValueError(f"{name}: Invalid axis {axes[0]} for operand {x.str_short()}; axes count from the front")
        shape = reduced_shape(name, x, axes)
        if x.shape[axes[0]] == 0:
            raise ValueError(
                f"{name}: argmin and argmax require non-empty reduced dimensions; axis {axes[0]} of {x.str_short()} "
                "has no elements to choose from"
            )
        return ShapedArray(shape, index_dtype)

    def function(operand: Any, axis: int, index_dtype: Any = None) -> Any:
        axes = (integer(axis, f"{name}: axis"),)
        dtype = dtypes.default_int_dtype() if index_dtype is None else dtypes.canonicalize_dtype(index_dtype)
        return primitive.bind(operand, axes=axes, index_dtype=dtype)

    primitive = Primitive(name, abstract_eval=abstract_eval, tags=("exact",), doc=doc)
    impl_rules.register(primitive, impl, prepared=prepared, large=_speed.by_operand(name))
    vmap_rules.register(primitive, _shift_axes_rule(primitive))
    derivative(primitive)
    return defined(function, primitive)


# -- along an axis -------------------------------------------------------------------------------------------------


def cumulative(
    name: str, fold: Fold, accepts: Kinds, derivative: Derivative, doc: str, linear_in: tuple[int, ...] = ()
) -> tuple[Function, Primitive]:
    """Define a cumulative reduction along an axis: a row in the table, with the arguments of `reduction`."""
    accumulate = fold.ufunc.accumulate

    def impl(x: Any, neutral: Function, *, axis: int, reverse: bool) -> Any:
        way = (slice(None),) * axis + (slice(None, None, -1 if reverse else None),)
        return accumulate(x[way], axis, x.dtype)[way]

    def prepared(avals: Avals, *, axis: int, reverse: bool) -> Any:
        dtype = avals[0].dtype
        plain = not reverse and avals[0].size and fold.width(dtype) is dtype
        if not plain or dtype.kind not in "biufc":
            return None
        return HostCode("{out} = {accumulate}({0}, {axis}, {dtype})", accumulate=accumulate, axis=axis, dtype=dtype)

    @takes(name, 1)
    def abstract_eval(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_kind(name, x, accepts)
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{name}: {x.str_short()} has no axis {axis}")
        return x

    def vmap(axis_size: int, vals: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        return primitive.bind(vals[0], axis=axis + (axis >= dims[0]), reverse=reverse), dims[0]

    def function(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        along = canonical_axis(axis, get_aval(operand).ndim, f"{name}: axis")
        return primitive.bind(operand, axis=along, reverse=bool(reverse))

    primitive = Primitive(name, abstract_eval=abstract_eval, linear_in=linear_in, doc=doc)
    impl_rules.register(primitive, fold.on_host(impl), prepared=prepared, large=_speed.elementwise(name))
    vmap.__name__ = f"{name}_vmap"
    vmap_rules.register(primitive, vmap)
    derivative(primitive)
    CUMULATIVE[primitive] = fold
    return defined(function, primitive)
