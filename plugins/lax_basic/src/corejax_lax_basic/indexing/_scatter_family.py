"""Parts that scatters share: the public function, type rule, batching, and the gather at a scatter's windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive, ShapedArray, get_aval, impl_rules, is_undef_primal, move_batch_axis
from corejax_lax_basic import _speed
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints
from corejax_lax_basic._base.rows import named
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic._base.type_rules import Kinds, check_kind
from corejax_lax_basic.indexing._host_windows import combine, plan_of, put
from corejax_lax_basic.indexing.dimension_numbers import (
    FILL,
    GatherScatterMode,
    ScatterDimensionNumbers,
    canonical_mode,
    canonical_numbers,
    check_scatter,
    gather_numbers,
    slice_sizes_of,
)
from corejax_lax_basic.indexing.gather import batched_numbers, gather_p
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim

__corejax_registers_for_caller__ = True  # a primitive's provenance is the module that defines it

_ARGUMENTS = """

    Args:
        operand: the array.
        scatter_indices: integers; the last axis holds the components of a window's first position.
        updates: the windows, of the operand's dtype.
        dimension_numbers: the roles of the axes.
        indices_are_sorted: promise that indices increase.
        unique_indices: promise that windows do not overlap; the result for windows that do is undefined.
        mode: treatment of windows that are not inside the operand: `"clip"` moves them inside; `"drop"`, `"fill"` and
            None drop them; `"promise_in_bounds"` promises that all are inside, and drops the others all the same.

    Raises:
        TypeError: dtypes differ, or dimension numbers, indices or updates do not fit the operand.
        ValueError: `mode` is none of these.
    """


def scatter_primitive(
    name: str, ufunc: Any, accepts: Kinds, linear_in: tuple[int, ...], doc: str
) -> tuple[Callable[..., Any], Primitive]:
    """Define a scatter primitive without rules of differentiation, and its function.

    Args:
        name: name of the function; the primitive's name has a hyphen.
        ufunc: NumPy's function that combines updates with the array's elements; None if updates replace them.
        accepts: the kinds of dtypes that it accepts.
        linear_in: positions of the operands in which it is linear.
        doc: a sentence that says what the function does.
    """

    @takes(name.replace("_", "-"), 3)
    def abstract_eval(
        x: ShapedArray,
        indices: ShapedArray,
        updates: ShapedArray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: Any,
    ) -> ShapedArray:
        check_kind(name, x, accepts)
        check_scatter(name, x, indices, updates, dimension_numbers)
        return x

    def impl(
        x: Any,
        indices: Any,
        updates: Any,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: GatherScatterMode,
        **promises: Any,
    ) -> Any:
        sizes = slice_sizes_of(x.shape, updates.shape, dimension_numbers)
        plan = plan_of(x.shape, indices.shape, gather_numbers(dimension_numbers), sizes)
        if ufunc is None:
            return put(x, indices, updates, plan, mode)
        return combine(ufunc, x, indices, updates, plan, mode)

    def vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        return batched_scatter(primitive, axis_size, vals, dims, **params)

    primitive = Primitive(
        name.replace("_", "-"),
        linear_in=linear_in,
        tags=("structural",) if name == "scatter" else (),
        abstract_eval=abstract_eval,
        vmap=vmap,
        doc=doc,
    )
    if name == "scatter":  # it only moves memory, so that compiling it gains nothing
        impl_rules.register(primitive, impl)
    else:
        impl_rules.register(primitive, impl, large=_speed.by_operand(name))
    return _function(name, primitive, doc), primitive


def _function(name: str, primitive: Primitive, doc: str) -> Callable[..., Any]:
    def scatter(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Any:
        return primitive.bind(
            operand,
            scatter_indices,
            updates,
            dimension_numbers=canonical_numbers(name, dimension_numbers, ScatterDimensionNumbers),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=canonical_mode(name, mode),
        )

    named(scatter, name, doc + _ARGUMENTS).__module__ = primitive.provenance.module
    return scatter


def batched_scatter(
    primitive: Primitive, axis_size: int, vals: Any, dims: Any, *, dimension_numbers: Any, **params: Any
) -> Any:
    """Apply a scatter to a batch."""
    numbers, (x, indices) = batched_scatter_numbers(axis_size, dimension_numbers, vals, dims)
    params["indices_are_sorted"] &= dims[1] is None
    updates = move_batch_axis(axis_size, dims[2], 0, vals[2])
    return primitive.bind(x, indices, updates, dimension_numbers=numbers, **params), 0


def batched_scatter_numbers(axis_size: int, numbers: Any, vals: Any, dims: Any) -> tuple[Any, tuple[Any, Any]]:
    """Return dimension numbers for a batch, and operand and indices with the batch in front.

    The batch is an axis of windows if the indices are not mapped, else a batching axis of all operands.
    """
    (x, indices, *_), (d, d_indices, *_) = vals, dims
    if d_indices is not None:
        indices = move_batch_axis(axis_size, d_indices, 0, indices)
    numbers = batched_numbers(numbers, operand=True, indices=d_indices is not None)
    return numbers, (move_batch_axis(axis_size, d, 0, x), indices)


def gathered(
    x: Any,
    indices: Any,
    updates: Ints,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> Any:
    """Return the elements where a scatter would write updates of this shape, with 0 for windows that it drops.

    If the array has no elements, every window is dropped.
    """
    if any(type(n) is int and n == 0 for n in get_aval(x).shape):
        return broadcast_in_dim(make_scalar(0, get_aval(x).dtype), updates, ())
    return gather_p.bind(
        x,
        indices,
        dimension_numbers=gather_numbers(dimension_numbers),
        slice_sizes=slice_sizes_of(get_aval(x).shape, updates, dimension_numbers),
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        fill_value=0 if mode is FILL else None,
    )


def shape_of(x: Any) -> Ints:
    """Return the shape of a transpose rule's operand, linear or not."""
    return (x.aval if is_undef_primal(x) else get_aval(x)).shape
