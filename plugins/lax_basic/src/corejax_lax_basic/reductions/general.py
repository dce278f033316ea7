"""`reduce`: the reduction by any associative function of two elements.

A function with a primitive of its own and the neutral element of that primitive uses it: `reduce(x, 0, add, (0,))` is
`reduce_sum`. Source: StableHLO, `reduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    as_array,
    dtypes,
    get_aval,
    impl_rules,
    jvp_flat,
    jvp_rules,
    move_batch_axis,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.speed import engine
from corejax.extend.transforms import batch_flat
from corejax_lax_basic._base.axes import canonical_axes, sequence
from corejax_lax_basic._base.placing import place
from corejax_lax_basic._speed import LARGE
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.elementwise.arithmetic import add, max, min, mul
from corejax_lax_basic.elementwise.logical import bitwise_and, bitwise_or, bitwise_xor
from corejax_lax_basic.reductions._family import REDUCTIONS, reduced_shape
from corejax_lax_basic.reductions._program import (
    checked_operands,
    concrete_scalar,
    operands_and_initial,
    reduce_by_halves,
    reduction_program,
)
from corejax_lax_basic.reductions.reduce import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_sum_p,
    reduce_xor_p,
)

__all__ = ["reduce", "reduce_p"]

_MONOIDS: dict[Any, Primitive] = {
    add: reduce_sum_p,
    mul: reduce_prod_p,
    max: reduce_max_p,
    min: reduce_min_p,
    bitwise_and: reduce_and_p,
    bitwise_or: reduce_or_p,
    bitwise_xor: reduce_xor_p,
}


@api_boundary
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Reduce over axes by a function of two elements.

    Args:
        operands: array, or pytree of arrays of one shape.
        init_values: a scalar for each operand. It has to be neutral to the function: how often it enters is
            unspecified.
        computation: function of two pytrees of scalars, each as `operands`, that returns one. It has to be associative;
            it need not be commutative.
        dimensions: the axes to reduce.
        out_sharding: sharding of the result, a sharding or a `PartitionSpec`.

    Returns:
        Arrays without the axes, of the operands' dtypes.

    Raises:
        TypeError: types of operands, initial values and the function's result do not fit, or it is not a function.
        ValueError: the structures differ, `operands` has no arrays, or an axis does not exist or is given twice.
        NotImplementedError: the function closes over a value that is being traced.
    """
    if out_sharding is not None:
        return place("reduce", reduce(operands, init_values, computation, dimensions), out_sharding)
    xs, initial, treedef = operands_and_initial("reduce", operands, init_values)
    axes = tuple(
        sorted(canonical_axes(sequence(dimensions, "reduce: dimensions"), get_aval(xs[0]).ndim, "reduce: axis"))
    )
    monoid = _monoid(computation, xs, initial)
    if monoid is not None:
        out = monoid.bind(xs[0], axes=axes)
        strong = get_aval(out).weak_type and not get_aval(initial[0]).weak_type
        return tree.tree_unflatten(treedef, [convert_element_type(out, get_aval(out).dtype) if strong else out])
    program = reduction_program("reduce", computation, [get_aval(x) for x in xs], treedef)
    return tree.tree_unflatten(treedef, reduce_p.bind(*xs, *initial, jaxpr=program, dimensions=axes))


def _monoid(computation: Any, xs: list[Any], initial: list[Any]) -> Primitive | None:
    """Return the primitive that reduces by a function with this initial value, or None."""
    try:
        primitive = _MONOIDS.get(computation)
    except TypeError:  # not hashable
        return None
    if primitive is None or len(xs) != 1:
        return None
    aval, value = get_aval(xs[0]), concrete_scalar(initial[0])
    if value is None or (dtypes.is_bool(aval.dtype) and computation in (add, mul)):
        return None
    return primitive if value == REDUCTIONS[primitive].neutral(aval.dtype) else None


# -- rules -------------------------------------------------------------------------------------------------------


def _abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> list[ShapedArray]:
    operands = checked_operands("reduce", jaxpr, avals)
    shape = reduced_shape("reduce", avals[0], dimensions)
    return [ShapedArray(shape, a.dtype) for a in operands]


def _jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> Any:
    return jvp_flat(lambda *xs: reduce_by_halves(jaxpr, dimensions, *xs), primals, tangents)


def _vmap(axis_size: int, vals: Any, dims: Any, *, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> Any:
    count = len(vals) // 2
    if any(d is not None for d in dims[count:]):
        return batch_flat(lambda *xs: reduce_by_halves(jaxpr, dimensions, *xs), axis_size, vals, dims)
    xs = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals[:count], dims[:count], strict=True)]
    outs = reduce_p.bind(*xs, *vals[count:], jaxpr=jaxpr, dimensions=tuple(d + 1 for d in dimensions))
    return outs, [0] * count


reduce_p = Primitive(
    "reduce",
    multiple_results=True,
    tags=("higher_order",),
    abstract_eval=_abstract_eval,
    vmap=_vmap,
    doc="Reduce over axes by a program of two elements.",
)
jvp_rules.register(reduce_p, _jvp, symbolic_zeros=True)


@impl_rules.register(reduce_p, device=True)
def _impl(*arrays: Any, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> list[Any]:
    outs = None
    if arrays[0].size >= LARGE:
        outs = engine().run_compiled(reduce_p, arrays, {"jaxpr": jaxpr, "dimensions": dimensions})
    return outs or [as_array(x) for x in reduce_by_halves(jaxpr, dimensions, *arrays)]
