"""The public function `fixed_point`, which stages a function of pytrees and applies the primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    DebugInfo,
    FlatFunction,
    Jaxpr,
    ShapedArray,
    Tracer,
    arg_names,
    as_array,
    check_arguments,
    dtypes,
    fun_name,
    get_aval,
    leaf_names,
    stage,
    tree,
)
from corejax_fixed_point.primitive import fixed_point_p


def fixed_point(f: Callable[..., Any], x0: Any, *params: Any, tol: float | None = None, max_steps: int = 1000) -> Any:
    """Find x with `f(x, *params) = x` by iterating f from `x0`.

    The result is differentiable with respect to `params` and the values that f closes over, by the implicit function
    theorem, but not with respect to x0. The function f must be a contraction near the solution; the iteration and the
    iterations of the derivatives converge at its rate.

    Args:
        f: function of x and the params that returns the structure, shapes and dtypes of x. It is staged, so that
            Python control flow cannot depend on values.
        x0: start of the iteration, a pytree of floating-point or complex arrays. Python scalars take the dtype that f
            returns.
        params: pytrees of arrays.
        tol: x has converged when each leaf changes by at most `tol * (1 + max(abs(leaf)))` in a step. The default is 8
            times the machine epsilon of the least precise leaf. If f contracts by a factor q, the error of x is at most
            q / (1 - q) times that change.
        max_steps: maximum number of iterations; x is NaN if it has not converged by then.

    Returns:
        x, with the structure of x0. Under `vmap`, convergence is tested separately for each problem of the batch.

    Raises:
        TypeError: f is not a function, a leaf is not an array, x0 has integers, or f's result differs in type from x0.
        ValueError: `max_steps` is less than 1, or `tol` is negative.
    """
    if not callable(f):
        raise TypeError(f"fixed_point: f is a function, got {f!r} of type {type(f).__name__}")
    if max_steps < 1 or (tol is not None and tol < 0):
        raise ValueError(f"fixed_point: max_steps is at least 1 and tol at least 0, got {max_steps=} and {tol=}")
    leaves, in_tree = tree.tree_flatten((x0, *params))
    check_arguments("fixed_point", f, leaves, lambda: arg_names(f, in_tree))
    operands = [x if isinstance(x, Tracer) else as_array(x) for x in leaves]
    x_tree = tree.tree_structure(x0)
    xs, rest = operands[: x_tree.num_leaves], operands[x_tree.num_leaves :]

    jaxpr, consts = _staged(f, in_tree, x_tree, [*xs, *rest])
    if any(get_aval(x).weak_type for x in xs):
        xs = [_strong(x, out.dtype) for x, out in zip(xs, jaxpr.out_avals, strict=True)]
        jaxpr, consts = _staged(f, in_tree, x_tree, [*xs, *rest])
    avals = [get_aval(x) for x in xs]
    _check_types(f, x_tree, avals, jaxpr.out_avals)
    # Values that f closes over become operands, because an enclosing transformation may trace them.
    invars = [*jaxpr.constvars, *jaxpr.invars[len(xs) :], *jaxpr.invars[: len(xs)]]
    program = ClosedJaxpr(Jaxpr((), invars, jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info), ())
    if tol is None:
        tol = 8 * max((float(dtypes.finfo(a.dtype).eps) for a in avals), default=0.0)
    outs = fixed_point_p.bind(
        *(*consts, *rest, *xs),
        jaxpr=program,
        num_params=len(consts) + len(rest),
        tol=float(tol),
        rtol=0.0,
        max_steps=int(max_steps),
        batch_ndim=0,
    )
    return tree.tree_unflatten(x_tree, outs)


def _staged(f: Callable[..., Any], in_tree: Any, x_tree: Any, operands: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
    """Stage f, check the structure of its result, and return the program and the values that f closes over."""
    flat = FlatFunction(f, in_tree)
    debug = DebugInfo(f, "fixed_point", tree.treedef_tuple([in_tree, tree.tree_structure({})]))
    jaxpr, consts = stage(flat, [get_aval(x) for x in operands], debug)
    if flat.out_tree != x_tree:
        raise TypeError(
            f"fixed_point: function {fun_name(f)} has to give what is like x0, of structure {x_tree}, "
            f"but gives {flat.out_tree}"
        )
    return jaxpr, consts


def _strong(x: Any, dtype: Any) -> Any:
    """Convert a leaf from a Python scalar to the dtype that f returns."""
    from corejax import lax

    return lax.convert_element_type(x, dtype) if get_aval(x).weak_type else x


def _check_types(f: Any, x_tree: Any, avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]) -> None:
    for name, x, out in zip(leaf_names(x_tree, "x0"), avals, out_avals, strict=True):
        if not dtypes.is_inexact(x.dtype):
            raise TypeError(
                f"fixed_point: {name} is {x.str_short(short_dtypes=False)}; x has to be of floating-point or complex "
                "numbers, which converge"
            )
        if (x.shape, x.dtype) != (out.shape, out.dtype):
            given, made = (a.str_short(short_dtypes=False) for a in (x, out))
            raise TypeError(
                f"fixed_point: {name} is {given}, of which function {fun_name(f)} makes {made}; it has to give what it "
                "takes. Start from that type, or convert the result"
            )


__all__ = ["fixed_point"]
