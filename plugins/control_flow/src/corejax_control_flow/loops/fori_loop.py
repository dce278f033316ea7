"""`fori_loop`: a `scan` if the bounds are known while tracing, else a `while_loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from corejax.extend import (
    Array,
    FlatFunction,
    Jaxpr,
    ShapedArray,
    Tracer,
    Var,
    as_array,
    dtypes,
    fun_name,
    get_aval,
    host_value,
    stage,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import write_cells
from corejax.extend.types import SymbolicDim
from corejax_control_flow.loops._carries import cached_on, carry_fixed_point, function_or_raise
from corejax_control_flow.loops.progress import Progress, as_progress_bar
from corejax_control_flow.loops.scan import checked_unroll, scan_traced
from corejax_control_flow.loops.while_loop import while_traced
from corejax_control_flow.programs.in_python import in_python, known, results
from corejax_control_flow.programs.messages import shown
from corejax_control_flow.programs.tracing import (
    Traced,
    check_leaves,
    decider_of,
    make_dependent,
    trace_dependent,
)
from corejax_control_flow.programs.weak_types import convert

T = TypeVar("T")

_LEAF = tree.tree_structure(0)


class _Iteration(FlatFunction):
    """A body with the index as its first carry: `(i, *carry) -> (i + 1, *new carry)`."""

    __slots__ = ()

    def __call__(self, *leaves: Any) -> list[Any]:
        """Call the function with these leaves, and return the next index and the leaves of its result."""
        return [leaves[0] + 1, *super().__call__(*leaves)]


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: complex,
    *,
    unroll: int | bool | None = None,
    progress: Progress = False,
) -> Array: ...
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, T], T],
    init_val: T,
    *,
    unroll: int | bool | None = None,
    progress: Progress = False,
) -> T: ...
@overload
def fori_loop(  # a first value with numbers inside, or NumPy's arrays
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], T],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    progress: Progress = False,
) -> T: ...
@api_boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    progress: Progress = False,
) -> Any:
    """Apply a function once for each integer of a range.

    Equivalent to this Python loop, but compiled as one operation:

        val = init_val
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    With bounds that are known while tracing this is a `scan`, which supports reverse-mode differentiation. With traced
    or batched bounds it is a `while_loop`, which does not.

    Args:
        lower: the first index, an integer scalar, or a float of integral value.
        upper: the end of the range, a scalar of the same dtype; no iteration runs if it is at most `lower`.
        body_fun: function `(i, val) -> val` of a scalar (of the bounds' dtype; weakly typed if both are Python
            numbers) and a pytree of arrays. It must return `val` with the same structure, shapes and dtypes.
        init_val: initial value. Python scalars in it take the dtype that `body_fun` returns for them.
        unroll: number of iterations in one pass of the compiled loop, 0 or True for all; only with static bounds.
        progress: progress bar to show: True, its label, or a `ProgressBar`.

    Returns:
        The last value.

    Raises:
        TypeError: if a bound is not an integer or float scalar, the bounds' dtypes differ, `body_fun` changes the
            value's structure or types or is not a function, or a leaf of `init_val` is not an array.
        ValueError: if `unroll` is passed with bounds that are not static or is negative, or a bound has a fraction.
        OverflowError: if a bound does not fit into the other bound's dtype, which is the index's.
    """
    function_or_raise("fori_loop", "body_fun must be a function (i, val) -> val", body_fun)
    length = None
    if isinstance(lower, SymbolicDim) or isinstance(upper, SymbolicDim):
        length = _symbolic_length(lower, upper)
        lower, upper = (as_array(bound) if isinstance(bound, SymbolicDim) else bound for bound in (lower, upper))
    lower, upper, index = _bounds(body_fun, lower, upper)
    init, init_tree = check_leaves("fori_loop", body_fun, init_val, "init_val")
    if in_python() and not {type(None)} & {type(known(lower)), type(known(upper))}:
        for i in range(int(known(lower)), int(known(upper))):
            init_val = body_fun(Array(np.asarray(i, index.dtype), index), init_val)
        return results(init_val)
    bar = as_progress_bar("fori_loop", progress)
    lower, upper, init, body = _traced(body_fun, lower, upper, init, init_tree)
    if length is None and not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
        length = max(int(upper) - int(lower), 0)
    init = [*init, *[cell.get() for cell in body.cells]]
    if length is not None:
        steps = checked_unroll("fori_loop", 1 if unroll is None else unroll, length)
        outs = scan_traced(body, init, [], length, False, steps, bar)
        return tree.tree_unflatten(init_tree, write_cells(body.cells, outs[1:]))
    if unroll is not None:
        raise ValueError(
            f"fori_loop of {fun_name(body_fun)}: unroll={unroll!r} needs bounds that are known while tracing, "
            f"got lower={lower!r} and upper={upper!r}"
        )
    between, compare = cached_on(body.jaxpr, ("with bound",), lambda: _with_bound(body.jaxpr, get_aval(upper)))
    cond = Traced(compare, [], tree.tree_structure(0))
    outs = while_traced(cond, body._replace(jaxpr=between), [init[0], upper, *init[1:]], bar)
    return tree.tree_unflatten(init_tree, write_cells(body.cells, outs[2:]))


def _traced(
    body_fun: Any, lower: Any, upper: Any, init: list[Any], init_tree: Any
) -> tuple[Any, Any, list[Any], Traced]:
    """Trace the body; return the bounds, the initial carries with the index first, and the body for their types."""
    in_tree = tree.treedef_tuple([_LEAF, init_tree])
    ends = decider_of(get_aval(lower), get_aval(upper))
    if ends is not None:
        lower, upper, *init = [make_dependent(x, ends) for x in (lower, upper, *init)]
    init, body = carry_fixed_point(
        "fori_loop",
        body_fun,
        [lower, *init],
        init_tree,
        lambda avals: trace_dependent(ends, "fori_loop", body_fun, in_tree, avals, _Iteration),
        lambda traced: traced.out_tree,
    )
    return lower, upper, init, body


def _symbolic_length(lower: Any, upper: Any) -> Any:
    """Return the number of iterations if both bounds are sizes, one of them symbolic; else None."""
    are_sizes = all(isinstance(bound, SymbolicDim | int) and type(bound) is not bool for bound in (lower, upper))
    return max(upper - lower, 0) if are_sizes else None


def _bounds(body_fun: Any, lower: Any, upper: Any) -> tuple[Any, Any, ShapedArray]:
    """Return both bounds in one dtype, and the type of the index: weak if both are Python numbers."""
    avals = []
    for name, bound in (("lower", lower), ("upper", upper)):
        try:
            aval = get_aval(bound)
        except TypeError:
            aval = None
        if aval is None or aval.shape != () or not (dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
            got = f"{bound!r} of type {type(bound).__name__}" if aval is None else shown(aval)
            raise TypeError(f"fori_loop of {fun_name(body_fun)}: {name} must be an integer scalar, got {got}")
        if dtypes.is_float(aval.dtype) and not isinstance(bound, Tracer) and not float(host_value(bound)).is_integer():
            raise ValueError(f"fori_loop of {fun_name(body_fun)}: {name} must be an integral number, got {bound!r}")
        avals.append(aval)
    if avals[0] is avals[1] and avals[0].refinement is None:
        return lower, upper, avals[0]
    kinds = {dtypes.is_float(a.dtype) for a in avals}
    if len(kinds) > 1 or (avals[0].dtype != avals[1].dtype and not any(a.weak_type for a in avals)):
        raise TypeError(
            f"fori_loop of {fun_name(body_fun)}: arguments to fori_loop must have equal types, "
            f"got {shown(avals[0])} and {shown(avals[1])}: cast one of them, for example "
            f"upper.astype('{avals[0].dtype.name}')"
        )
    dtype = avals[0].dtype if avals[1].weak_type else avals[1].dtype
    index = ShapedArray((), dtype, all(a.weak_type for a in avals))
    return (*(_as_index(x, index) for x in (lower, upper)), index)


def _as_index(bound: Any, index: ShapedArray) -> Any:
    """Convert a bound to the index's type."""
    if get_aval(bound) is index:
        return bound
    if isinstance(bound, Tracer):
        return convert(bound, index.dtype)
    value = host_value(bound)
    info = dtypes.finfo(index.dtype) if dtypes.is_float(index.dtype) else dtypes.iinfo(index.dtype)
    if not info.min <= int(value) <= info.max:
        raise OverflowError(f"fori_loop: the bound {int(value)} does not fit into the other bound's {index.dtype.name}")
    return as_array(np.asarray(value, index.dtype))


def _with_bound(old: Jaxpr, aval: ShapedArray) -> tuple[Jaxpr, Jaxpr]:
    """Return the body and the condition `i < upper` of a while loop that carries `(i, upper, ...)`."""
    from corejax_lax_basic import lax

    upper = Var(aval)
    invars = [old.invars[0], upper, *old.invars[1:]]
    outvars = [old.outvars[0], upper, *old.outvars[1:]]
    between = Jaxpr(old.constvars, invars, old.eqns, outvars, old.debug_info)
    less, _ = stage(lambda i, upper, *_: [lax.lt(i, upper)], [v.aval for v in invars], old.debug_info)
    return between, less
