"""`reduce_window`: the reduction of windows by any associative function of two elements.

`add`, `max` and `min` with their neutral elements have primitives of their own. Source: StableHLO, `reduce_window`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    as_array,
    get_aval,
    impl_rules,
    jvp_flat,
    jvp_rules,
    move_batch_axis,
    split_list,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.speed import engine
from corejax.extend.transforms import batch_flat
from corejax_lax_basic._speed import LARGE
from corejax_lax_basic.elementwise.arithmetic import add, max, min
from corejax_lax_basic.reductions._program import (
    checked_operands,
    concrete_scalar,
    operands_and_initial,
    reduce_by_halves,
    reduction_program,
)
from corejax_lax_basic.shape.broadcasting import expand_dims
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.slicing import pad, slice_in_dim
from corejax_lax_basic.windows._on_host import has_small_windows
from corejax_lax_basic.windows.geometry import (
    count_windows,
    dilated,
    dilated_shape,
    integers,
    ones_unless,
    padtype_to_pads,
    pairs,
    windowed_shape,
    with_axis,
)
from corejax_lax_basic.windows.reduce_window import (
    WINDOWED,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
)

__all__ = ["reduce_window", "reduce_window_p"]

_NAME = "reduce_window"
_MONOIDS: dict[Any, Primitive] = {add: reduce_window_sum_p, max: reduce_window_max_p, min: reduce_window_min_p}


@api_boundary
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce all windows of an array by a function of two elements.

    Args:
        operand: array, or pytree of arrays of one shape.
        init_value: a scalar for each operand, neutral to the function; padding has this value.
        computation: function of two pytrees of scalars, each as `operand`, that returns one. It has to be associative.
        window_dimensions: the window's size along each axis.
        window_strides: distances between windows; by default 1.
        padding: elements before and after each axis, negative to drop some: a sequence of `(low, high)`, "VALID" for no
            padding, "SAME" or "SAME_LOWER" for ceil(size / stride) windows.
        base_dilation: distances to which the array's elements are spread; by default 1.
        window_dilation: distances between the window's elements; by default 1.

    Returns:
        Arrays with an element for each window, of the operands' dtypes.

    Raises:
        TypeError: types of operands, initial values and the function's result do not fit, it is not a function, or an
            argument does not have a positive integer for each axis.
        ValueError: the structures differ, `operand` has no arrays, or padding is of another form.
        NotImplementedError: the function closes over a value that is being traced.
    """
    xs, initial, treedef = operands_and_initial(_NAME, operand, init_value)
    aval = get_aval(xs[0])
    window = integers(_NAME, "window_dimensions", window_dimensions, aval.ndim, 1)
    strides = ones_unless(_NAME, "window_strides", window_strides, aval.ndim)
    base_dilation = ones_unless(_NAME, "base_dilation", base_dilation, aval.ndim)
    window_dilation = ones_unless(_NAME, "window_dilation", window_dilation, aval.ndim)
    if isinstance(padding, str):
        pads = tuple(padtype_to_pads(aval.shape, dilated_shape(window, window_dilation), strides, padding))
    else:
        pads = pairs(_NAME, padding)
    params = {
        "window_dimensions": window,
        "window_strides": strides,
        "padding": pads,
        "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    primitive = _monoid(computation, xs, initial)
    if primitive is not None:
        return tree.tree_unflatten(treedef, [primitive.bind(xs[0], **params)])
    program = reduction_program(_NAME, computation, [get_aval(x) for x in xs], treedef)
    return tree.tree_unflatten(treedef, reduce_window_p.bind(*xs, *initial, jaxpr=program, **params))


def _monoid(computation: Any, xs: list[Any], initial: list[Any]) -> Primitive | None:
    """Return the primitive that reduces windows by a function with this initial value, or None."""
    try:
        primitive = _MONOIDS.get(computation)
    except TypeError:  # not hashable
        return None
    if primitive is None or len(xs) != 1:
        return None
    value = concrete_scalar(initial[0])
    return primitive if value is not None and value == WINDOWED[primitive].neutral(get_aval(xs[0]).dtype) else None


# -- rules -------------------------------------------------------------------------------------------------------


def _elements(x: Any, initial: Any, params: dict[str, Any]) -> Any:
    """Return an array with the elements of each window along new last axes, one for each axis of the window."""
    config = [(lo, hi, d - 1) for (lo, hi), d in zip(params["padding"], params["base_dilation"], strict=True)]
    if any(map(any, config)):
        x = pad(x, initial, config)
    for axis, window in enumerate(params["window_dimensions"]):
        stride, dilation = params["window_strides"][axis], params["window_dilation"][axis]
        count = count_windows(get_aval(x).shape[axis], dilated(window, dilation), stride)
        parts = []
        for k in range(window):
            start = k * dilation if count else 0
            end = start + (count - 1) * stride + 1 if count else 0
            parts.append(expand_dims(slice_in_dim(x, start, end, stride, axis), (get_aval(x).ndim,)))
        x = concatenate(parts, get_aval(x).ndim)
    return x


def _by_elements(jaxpr: ClosedJaxpr, params: dict[str, Any], *operands: Any) -> list[Any]:
    """Reduce arrays that hold all elements of each window."""
    xs, initial = split_list(operands, [len(operands) // 2])
    ndim = len(params["window_dimensions"])
    elements = [_elements(x, v, params) for x, v in zip(xs, initial, strict=True)]
    return reduce_by_halves(jaxpr, tuple(range(ndim, 2 * ndim)), *elements, *initial)


def _abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr, **params: Any) -> list[ShapedArray]:
    operands = checked_operands(_NAME, jaxpr, avals)
    shape = windowed_shape(_NAME, avals[0], **params)
    return [ShapedArray(shape, a.dtype) for a in operands]


def _jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    return jvp_flat(lambda *xs: _by_elements(jaxpr, params, *xs), primals, tangents)


def _vmap(axis_size: int, vals: Any, dims: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    count = len(vals) // 2
    if any(d is not None for d in dims[count:]):
        return batch_flat(lambda *xs: _by_elements(jaxpr, params, *xs), axis_size, vals, dims)
    xs = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals[:count], dims[:count], strict=True)]
    return reduce_window_p.bind(*xs, *vals[count:], jaxpr=jaxpr, **with_axis(params, 0)), [0] * count


reduce_window_p = Primitive(
    _NAME,
    multiple_results=True,
    tags=("higher_order",),
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="Reduce windows by a program of two elements.",
)
jvp_rules.register(reduce_window_p, _jvp, symbolic_zeros=True)


@impl_rules.register(reduce_window_p, device=True)
def _impl(*arrays: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    outs = None
    if arrays[0].size >= LARGE and has_small_windows((), **params):
        outs = engine().run_compiled(reduce_window_p, arrays, {"jaxpr": jaxpr, **params})
    return outs or [as_array(x) for x in _by_elements(jaxpr, params, *arrays)]
