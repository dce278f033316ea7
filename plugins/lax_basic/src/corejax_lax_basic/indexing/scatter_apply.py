"""`scatter_apply`: an array with a function applied to elements at positions that are data.

    scatter_apply : a[*s] i[*places,k] -> a[*s]

The function is a program of scalars. It is applied to an element as often as the indices name it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    Tracer,
    batch_jaxpr,
    defjvp,
    eval_jaxpr_on_host,
    get_aval,
    move_batch_axis,
    nondifferentiable,
    stage_closed,
)
from corejax.extend.transforms import batch_flat
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.axes import Ints, canonical_shape
from corejax_lax_basic.indexing._host_windows import elements, plan_of
from corejax_lax_basic.indexing._scatter_family import batched_scatter_numbers, gathered
from corejax_lax_basic.indexing.dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    canonical_mode,
    canonical_numbers,
    check_scatter,
    gather_numbers,
    slice_sizes_of,
)
from corejax_lax_basic.indexing.scatter import scatter_p
from corejax_lax_basic.shape.rearranging import reshape

__all__ = ["scatter_apply", "scatter_apply_p"]


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """Apply a function to the elements of windows, more than once where windows overlap.

    It is differentiable if `unique_indices` promises that windows do not overlap.

    Args:
        operand: the array.
        scatter_indices: integers; the last axis holds the components of a window's first position.
        func: a function of a scalar of the operand's dtype that returns a scalar of that dtype.
        dimension_numbers: the roles of the axes.
        update_shape: the shape that updates would have.
        indices_are_sorted: promise that indices increase.
        unique_indices: promise that windows do not overlap.
        mode: treatment of windows that are not inside the operand, as in `scatter`.

    Raises:
        TypeError: `func` does not return such a scalar, or dimension numbers or indices do not fit the operand.
        NotImplementedError: `func` uses a value that is being traced, and windows may overlap.
    """
    name = "scatter_apply"
    if not callable(func):
        raise TypeError(f"scatter_apply: func must be a function, got {func!r} of type {type(func).__name__}")
    params: dict[str, Any] = {
        "dimension_numbers": canonical_numbers(name, dimension_numbers, ScatterDimensionNumbers),
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": canonical_mode(name, mode),
    }
    aval = get_aval(operand)
    shape = canonical_shape(update_shape)
    if unique_indices:
        check_scatter(name, aval, get_aval(scatter_indices), aval.update(shape=shape), params["dimension_numbers"])
        values = reshape(gathered(operand, scatter_indices, shape, **params), (-1,))
        (new,), (d,) = batch_flat(lambda x: [func(x)], values.aval.size, [values], [0])
        _check_result(get_aval(new).update(shape=get_aval(new).shape[d is not None :]), aval)
        new = reshape(move_batch_axis(values.aval.size, d, 0, new), shape)
        return scatter_p.bind(operand, scatter_indices, new, **params)
    closed = stage_closed(lambda x: [func(x)], [ShapedArray((), aval.dtype)])
    _check_result(closed.out_avals[0], aval)
    if any(isinstance(c, Tracer) for c in closed.consts):
        raise NotImplementedError(
            "scatter_apply: the function uses a value that is being traced; promise with unique_indices=True that no "
            "element is named twice, or use a gather and a scatter"
        )
    return scatter_apply_p.bind(operand, scatter_indices, jaxpr=closed, update_shape=shape, **params)


def _check_result(out: ShapedArray, aval: ShapedArray) -> None:
    if out.shape or out.dtype != aval.dtype:
        raise TypeError(
            f"scatter_apply: the function returns {out.str_short()} for a scalar of dtype {aval.dtype.name}; "
            "it must return a scalar of that dtype"
        )


def _impl(
    x: Any,
    indices: Any,
    *,
    jaxpr: ClosedJaxpr,
    update_shape: Ints,
    dimension_numbers: Any,
    mode: Any,
    **promises: bool,
) -> Any:
    sizes = slice_sizes_of(x.shape, update_shape, dimension_numbers)
    plan = plan_of(x.shape, indices.shape, gather_numbers(dimension_numbers), sizes)
    out = np.array(x, order="C")
    if 0 in update_shape or not out.size:
        return out
    flat = out.reshape(-1)
    times = np.bincount(elements(x.shape, indices, plan, mode)[0], minlength=flat.size)
    for k in range(times.max(initial=0)):
        chosen = np.flatnonzero(times > k)
        batched, _ = batch_jaxpr(jaxpr, chosen.size, [0], instantiate=True)
        flat[chosen] = eval_jaxpr_on_host(batched, [flat[chosen]])[0]
    return out


@takes("scatter_apply", 2)
def _abstract_eval(
    x: ShapedArray,
    indices: ShapedArray,
    *,
    jaxpr: ClosedJaxpr,
    update_shape: Ints,
    dimension_numbers: Any,
    **others: Any,
) -> ShapedArray:
    taken = jaxpr.in_avals[0]
    if x.dtype != taken.dtype:
        raise TypeError(f"scatter_apply: the program takes {taken.str_short()}, but the operand is {x.str_short()}")
    check_scatter("scatter_apply", x, indices, x.update(shape=update_shape), dimension_numbers)
    return x


def _vmap(axis_size: int, vals: Any, dims: Any, *, update_shape: Ints, dimension_numbers: Any, **params: Any) -> Any:
    numbers, (x, indices) = batched_scatter_numbers(axis_size, dimension_numbers, vals, dims)
    params["indices_are_sorted"] &= dims[1] is None
    shape = (axis_size, *update_shape)
    return scatter_apply_p.bind(x, indices, update_shape=shape, dimension_numbers=numbers, **params), 0


scatter_apply_p = Primitive(
    "scatter_apply",
    impl=_impl,
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="Apply a function to elements of an array at positions that are data.",
)
_reason = "of elements that are named more than once; promise that there are none with unique_indices=True"
defjvp(scatter_apply_p, nondifferentiable(_reason), None)
