"""Reductions by a user's function of two elements: it is staged as a program of scalars, then applied to arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from corejax.extend import (
    Array,
    ClosedJaxpr,
    DebugInfo,
    FlatFunction,
    ShapedArray,
    Tracer,
    config,
    fun_name,
    get_aval,
    jaxpr_as_fun,
    move_batch_axis,
    stage,
    tree,
)
from corejax.extend.transforms import batch_flat
from corejax_lax_basic._base.scalars import PYTHON_SCALARS, make_scalar
from corejax_lax_basic.conversion.convert import convert_element_type
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim
from corejax_lax_basic.shape.joining import concatenate
from corejax_lax_basic.shape.rearranging import reshape, squeeze, transpose
from corejax_lax_basic.shape.slicing import slice_in_dim

_programs: WeakKeyDictionary[Any, dict[Any, ClosedJaxpr]] = WeakKeyDictionary()  # by function, types, settings


def operands_and_initial(name: str, operands: Any, initial: Any) -> tuple[list[Any], list[Any], Any]:
    """Flatten operands and their initial values; Python scalars become arrays of the operands' dtypes.

    Raises:
        ValueError: the structures differ, or the operands have no arrays.
    """
    xs, treedef = tree.tree_flatten(operands)
    values, other = tree.tree_flatten(initial)
    if treedef != other:
        raise ValueError(f"{name}: Operands must have the same tree structure as init_values: {treedef}, {other}")
    if not xs:
        raise ValueError(f"{name}: operands have no arrays to reduce; their structure is {treedef}")
    arrays = [
        make_scalar(v, get_aval(x).dtype, True) if type(v) in PYTHON_SCALARS else v
        for x, v in zip(xs, values, strict=True)
    ]
    return xs, arrays, treedef


def concrete_scalar(x: Any) -> Any:
    """Return the value of a concrete array of rank 0, and None for other arrays and for tracers."""
    if isinstance(x, Tracer) or get_aval(x).ndim:
        return None
    return x.item() if type(x) is Array else x


def reduction_program(name: str, computation: Callable[..., Any], avals: Sequence[ShapedArray], treedef: Any) -> Any:
    """Stage a function of two elements, which are pytrees of scalars, as a program of their leaves.

    Raises:
        TypeError: it is not a function, or its result has another structure, shape or dtype than an element.
        NotImplementedError: it closes over a value that is being traced.
    """
    if not callable(computation):
        raise TypeError(f"{name}: computation must be a function of two elements, got {computation!r}")
    scalars = [ShapedArray((), a.dtype) for a in avals]
    key = (tuple(scalars), treedef, config.trace_key())
    try:
        cache = _programs.setdefault(computation, {})
    except TypeError:  # the function cannot be referred to weakly
        cache = {}
    if key not in cache:
        cache[key] = _staged(name, computation, scalars, treedef)
    return cache[key]


def _staged(name: str, computation: Callable[..., Any], scalars: list[ShapedArray], treedef: Any) -> ClosedJaxpr:
    arguments = tree.treedef_tuple([treedef, treedef])
    flat = FlatFunction(computation, arguments)
    debug = DebugInfo(computation, name, tree.treedef_tuple([arguments, tree.tree_structure({})]))

    def strong(*elements: Any) -> list[Any]:
        return [_strong(out) for out in flat(*elements)]

    jaxpr, consts = stage(strong, [*scalars, *scalars], debug)
    if flat.out_tree != treedef:
        raise TypeError(
            f"{name}: {fun_name(computation)} takes elements of structure {treedef}, returns {flat.out_tree}"
        )
    for before, after in zip(scalars, jaxpr.out_avals, strict=True):
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            raise TypeError(
                f"{name}: {fun_name(computation)} takes elements of type {before.str_short()} and returns "
                f"{after.str_short()}; these have to be equal"
            )
    if any(isinstance(c, Tracer) for c in consts):
        raise NotImplementedError(
            f"{name}: {fun_name(computation)} closes over a value that is being traced; make it part of the elements"
        )
    program = ClosedJaxpr(jaxpr.replace(debug_info=None), consts)  # debug_info would keep the weak key alive
    refuse_effects(name, program)
    return program


def refuse_effects(name: str, program: ClosedJaxpr) -> None:
    """Refuse a program with effects, because the number of its applications is unspecified.

    Raises:
        NotImplementedError: the program has effects; the message names them.
    """
    if program.effects:
        effects = ", ".join(sorted(program.effects))
        raise NotImplementedError(
            f"{name}: the function that combines elements must not have effects, but it has {effects}"
        )


def _strong(x: Any) -> Any:
    aval = get_aval(x)
    return convert_element_type(x, aval.dtype) if aval.weak_type else x


def checked_operands(name: str, program: ClosedJaxpr, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    """Return the types of the operands; `avals` has them and then those of as many initial values.

    Raises:
        TypeError: the numbers of operands and initial values differ, shapes of operands differ, an initial value is not
            a scalar of its operand's dtype, or the program has other types.
    """
    count = len(avals) // 2
    if not count or len(avals) % 2:
        raise TypeError(f"{name}: takes operands and as many initial values, got {len(avals)} altogether")
    operands, initial = avals[:count], avals[count:]
    for i, (x, v) in enumerate(zip(operands, initial, strict=True)):
        if x.shape != operands[0].shape:
            raise TypeError(
                f"{name}: operands must have the same shape; operand 0 is {operands[0].str_short()}, "
                f"operand {i} is {x.str_short()}"
            )
        if v.ndim or v.dtype != x.dtype:
            raise TypeError(
                f"{name}: the initial value of operand {i}, which is {x.str_short()}, has to be a scalar of its dtype, "
                f"got {v.str_short()}"
            )
    refuse_effects(name, program)
    types = [ShapedArray((), x.dtype) for x in operands]
    if list(program.in_avals) != types * 2 or [a.strip_weak_type() for a in program.out_avals] != types:
        raise TypeError(
            f"{name}: the program must take and return scalars of the operands' dtypes, "
            f"{[a.str_short() for a in types]} twice and once"
        )
    return operands


# -- on arrays -----------------------------------------------------------------------------------------------------


def combined(program: ClosedJaxpr, xs: list[Any], ys: list[Any]) -> list[Any]:
    """Apply the program to each pair of elements of arrays of one shape."""
    shape = get_aval(xs[0]).shape
    flat = [reshape(v, (-1,) if get_aval(v).size else (0,)) for v in (*xs, *ys)]
    size = get_aval(flat[0]).shape[0]
    outs, dims = batch_flat(jaxpr_as_fun(program), size, flat, [0] * len(flat))
    return [reshape(move_batch_axis(size, d, 0, out), shape) for out, d in zip(outs, dims, strict=True)]


def reduce_by_halves(program: ClosedJaxpr, dimensions: tuple[int, ...], *operands: Any) -> list[Any]:
    """Reduce operands, followed by their initial values, by combining neighbours, then neighbouring pairs, and so on.

    This takes about log2(n) applications of the program, each to many elements at once. Elements stay in their order;
    the initial value is combined last, from the left.
    """
    count = len(operands) // 2
    shape = get_aval(operands[0]).shape
    kept = tuple(i for i in range(len(shape)) if i not in dimensions)
    rest = tuple(shape[i] for i in kept)
    size = 1
    for d in dimensions:
        size *= shape[d]
    initial = [broadcast_in_dim(_strong(v), rest, ()) for v in operands[count:]]
    if not size:
        return initial
    xs = [reshape(transpose(_strong(x), (*dimensions, *kept)), (size, *rest)) for x in operands[:count]]
    while size > 1:
        half = size // 2
        pairs = [[slice_in_dim(x, start, 2 * half, 2) for x in xs] for start in (0, 1)]
        last = [slice_in_dim(x, 2 * half, size) for x in xs]
        xs = combined(program, *pairs)
        if size % 2:
            xs = [concatenate([x, y], 0) for x, y in zip(xs, last, strict=True)]
        size -= half
    return combined(program, initial, [squeeze(x, (0,)) for x in xs])
