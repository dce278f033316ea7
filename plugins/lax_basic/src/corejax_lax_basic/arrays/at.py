"""`x.at[index]`: new arrays with elements changed, and elements read, with a mode for positions out of bounds.

x.at[index].set(y)    # the array after x[index] = y
x.at[index].add(y)    # x with y added; an element that index names twice gets both values
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Array, Primitive, dtypes, get_aval, remembered
from corejax.extend.messages import warn_user
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._base.promotion import result_type
from corejax_lax_basic._base.rows import named
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic._promotion import as_operand, check_dtype_promotion, convert_operand
from corejax_lax_basic.arrays._basic_indexing import basic_index, complete, is_advanced
from corejax_lax_basic.arrays._indexing_by_arrays import gather_places, without_masks
from corejax_lax_basic.arrays._places import places_of
from corejax_lax_basic.conversion.convert import convert_element_type_p
from corejax_lax_basic.creation.filled import full_like
from corejax_lax_basic.creation.sequences import from_sequence
from corejax_lax_basic.indexing.dimension_numbers import PROMISE, ScatterDimensionNumbers, canonical_mode
from corejax_lax_basic.indexing.scatter import scatter_p
from corejax_lax_basic.indexing.scatter_apply import scatter_apply
from corejax_lax_basic.indexing.scatter_combining import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_sub_p,
)
from corejax_lax_basic.shape.broadcasting import broadcast_to
from corejax_lax_basic.shape.rearranging import rev_p, squeeze_p

_KEYWORDS = """

        Args:
            values: an array or scalar, or nested lists of these, that broadcasts to the elements; converted to the
                array's dtype.
            indices_are_sorted: promise that indices increase.
            unique_indices: promise that no element is named twice.
            mode: treatment of elements out of bounds: `"drop"`, `"fill"` and None leave them out, `"clip"` takes the
                nearest element, `"promise_in_bounds"` promises that all are in bounds.
            out_sharding: sharding of the result, a sharding or a `PartitionSpec`.
            wrap_negative_indices: whether negative indices count from the end.

        Raises:
            IndexError: the index does not fit the array; a static integer is out of bounds and `mode` is None.
            ValueError: the values do not broadcast to the elements, or `mode` is none of these.
        """


class IndexedArrays:
    """`x.at`, an object that is indexed like the array."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexedArray:
        return IndexedArray(self.array, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            "x.at[index] = value is not supported, because arrays are immutable. Make a new array: "
            "x = x.at[index].set(value)"
        )

    def __call__(self, *index: Any) -> Any:
        """Raise TypeError, because `x.at` must be indexed."""
        raise TypeError("x.at must be indexed, not called: x.at[index].set(value)")

    if not TYPE_CHECKING:  # hidden from type checkers, which then report misspelt names

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"x.at has no {name!r}: index it first, as in x.at[0].set(1)")

    def __repr__(self) -> str:
        return f"<x.at of {self.array!r}: index it, as in x.at[0].set(1)>"


class IndexedArray:
    """`x.at[index]`, elements of an array, with methods that return new arrays."""

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    if TYPE_CHECKING:  # `_method` defines them

        def set(
            self,
            values: Any,
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: Any = None,
            out_sharding: Any = None,
            wrap_negative_indices: bool = True,
        ) -> Array:
            """Replace elements by values."""
            ...

        add = subtract = mul = multiply = divide = power = min = max = set

    def __repr__(self) -> str:
        return f"<x.at[{_index_text(self.index)}] of {self.array!r}: get, set, add, ... return new arrays>"

    def _in_place(self, value: Any) -> Any:
        raise TypeError(
            "x.at[index] += value is not supported, because arrays are immutable. Make a new array: "
            "x = x.at[index].add(value), or multiply, divide, power, min, max"
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = _in_place

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the elements, as `x[index]`.

        Args:
            indices_are_sorted: promise that indices increase.
            unique_indices: promise that no element is named twice.
            mode: treatment of elements out of bounds: `"fill"` gives `fill_value`, `"clip"` and None the nearest
                element, `"promise_in_bounds"` promises that all are in bounds.
            fill_value: a scalar; by default NaN, the least signed or greatest unsigned integer, or True.
            out_sharding: sharding of the result, a sharding or a `PartitionSpec`.
            wrap_negative_indices: whether negative indices count from the end.

        Raises:
            IndexError: the index does not fit the array; a static integer is out of bounds and `mode` is None.
            ValueError: `mode` is none of these, or `fill_value` is not a scalar.
        """
        if fill_value is not None and np.ndim(fill_value):
            raise ValueError(f"at[...].get: fill_value must be a scalar, got shape {np.shape(fill_value)}")
        elements = self._elements(indices_are_sorted, unique_indices, mode, fill_value, wrap_negative_indices)
        out: Array = place("at[...].get", elements, out_sharding)
        return out

    def _elements(
        self, indices_are_sorted: bool, unique_indices: bool, mode: Any, fill_value: Any, wrap_negative_indices: bool
    ) -> Any:
        parsed = PROMISE if mode is None else canonical_mode("at[...].get", mode)
        entries = complete(self.array, self.index)
        if mode is None and wrap_negative_indices and not any(map(is_advanced, entries)):
            return basic_index(self.array, entries)
        x, entries, _ = without_masks(self.array, entries)
        return gather_places(
            x,
            entries,
            parsed,
            strict=mode is None,
            wrap=wrap_negative_indices,
            fill_value=None if fill_value is None else np.asarray(fill_value).item(),
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Apply a function of a scalar to elements, repeatedly to elements that are named more than once.

        It is differentiable if no element is named twice: without index arrays, or if `unique_indices` promises it.
        The other arguments and the errors are those of `set`.
        """

        def applied(x: Any, indices: Any, updates: Any, **options: Any) -> Any:
            return scatter_apply(x, indices, func, update_shape=get_aval(updates).shape, **options)

        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        return _changed("apply", self.array, self.index, 0, applied, *options)


def _index_text(index: Any) -> str:
    return ", ".join(map(_entry_text, index)) if type(index) is tuple and index else _entry_text(index)


def _entry_text(entry: Any) -> str:
    if not isinstance(entry, slice):
        return "..." if entry is Ellipsis else repr(entry)
    bounds = [entry.start, entry.stop] if entry.step is None else [entry.start, entry.stop, entry.step]
    return ":".join("" if b is None else repr(b) for b in bounds)


# -- changes -----------------------------------------------------------------------------------------------------


def _value(name: str, x: Any, values: Any) -> tuple[Any, np.dtype[Any]]:
    """Return the values to write as an array, and the dtype of the scatter: the array's own, or a wider one."""
    operand = from_sequence(values, name=f"at[...].{name}") if isinstance(values, list | tuple) else as_operand(values)
    if operand is NotImplemented:
        raise TypeError(
            f"at[...].{name} takes an array or a scalar, got {type(values).__name__}; "
            "make it an array with corejax.numpy.asarray"
        )
    dtype = x.aval.dtype
    if type(operand) is int and dtypes.is_integer(dtype):
        return make_scalar(operand, dtype), dtype
    given = getattr(operand, "dtype", None)
    if given is not None and given == dtype:  # None equals float64, for NumPy
        return operand, dtype
    if type(operand) is not bool:  # a Python bool has no dtype of its own that could disagree
        check_dtype_promotion(name, (x, operand))
    joint = result_type(x, operand)
    if joint != dtype:
        warn_user(
            f"at[...].{name}: values of {joint.name} are rounded to {dtype.name}, the array's dtype; "
            f"convert them first, or the array: x.astype({joint.name!r})",
            FutureWarning,
        )
    return convert_operand(operand, joint), joint


def _changed(
    name: str,
    x: Any,
    index: Any,
    values: Any,
    operation: Callable[..., Any],
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Any,
    wrap_negative_indices: bool,
) -> Array:
    """Return an array after a scatter of values to the elements that an index selects."""
    parsed = canonical_mode(f"at[...].{name}", mode)
    aval = x.aval
    values, dtype = _value(name, x, values)
    unchanged: Array = x
    x, entries, bools = without_masks(x, complete(x, index))
    places = places_of(x, entries, strict=mode is None, wrap=wrap_negative_indices)
    try:
        values = broadcast_to(values, places.shape)
    except ValueError:
        raise ValueError(
            f"at[...].{name}: values {values.aval.str_short()} do not broadcast to the shape {places.shape} "
            f"of the elements"
        ) from None
    if not aval.size:
        return unchanged
    if places.new_axes:
        values = squeeze_p.bind(values, dimensions=places.new_axes)
    if places.reverse:
        values = rev_p.bind(values, dimensions=places.reverse)
    out: Array = operation(
        convert_operand(x, dtype),
        places.indices,
        values,
        dimension_numbers=ScatterDimensionNumbers(*places.numbers),
        indices_are_sorted=bool(indices_are_sorted or places.distinct),
        unique_indices=bool(unique_indices or places.distinct),
        mode=parsed,
    )
    if dtype != aval.dtype:
        out = convert_element_type_p.bind(out, new_dtype=aval.dtype, weak_type=aval.weak_type)
    if bools:
        out = squeeze_p.bind(out, dimensions=bools)
    return out


def _method(name: str, primitive: Primitive, doc: str) -> Callable[..., Any]:
    @remembered
    def changed(x: Any, index: Any, values: Any, *options: Any) -> Any:
        return _changed(name, x, index, values, primitive.bind, *options)

    def method(
        self: IndexedArray,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        options = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        out = changed(self.array, self.index, values, *options)
        return place(f"at[...].{name}", out, out_sharding)

    return named(method, name, doc + _KEYWORDS, "IndexedArray")


def _of_ones(name: str, combine: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Define a method that combines the array with the products of the values, which are collected in ones."""

    def method(self: IndexedArray, values: Any, *, out_sharding: Any = None, **options: Any) -> Any:
        ones = full_like(self.array, 1)
        factors = _METHODS["multiply"](IndexedArray(ones, self.index), values, **options)
        return place(f"at[...].{name}", combine(self.array, factors), out_sharding)

    return named(method, name, doc + _KEYWORDS, "IndexedArray")


_METHODS: Mapping[str, Callable[..., Any]] = {
    "set": _method("set", scatter_p, "Replace elements by values; for elements named twice, either value may win."),
    "add": _method("add", scatter_add_p, "Add values to elements."),
    "subtract": _method("subtract", scatter_sub_p, "Subtract values from elements."),
    "multiply": _method("multiply", scatter_mul_p, "Multiply elements by values."),
    "min": _method("min", scatter_min_p, "Replace elements by their minima with values."),
    "max": _method("max", scatter_max_p, "Replace elements by their maxima with values."),
    "divide": _of_ones("divide", operator.truediv, "Divide elements by values."),
    "power": _of_ones("power", operator.pow, "Raise elements to the power of values."),
}
for _name, _function in _METHODS.items():
    setattr(IndexedArray, _name, _function)
IndexedArray.mul = _METHODS["multiply"]
