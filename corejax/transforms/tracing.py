"""`make_jaxpr` and `eval_shape`: trace a function on the types of its arguments, without computing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from corejax import tree
from corejax.base.restoring import run_within
from corejax.core.avals import typeof
from corejax.core.named_axes import named_axes
from corejax.interpreters.staging import stage_with_cells
from corejax.ir.debug_info import DebugInfo, named_as
from corejax.ir.jaxpr import ClosedJaxpr
from corejax.messages.tracebacks import api_boundary, frames_left_out
from corejax.transforms.flattening import (
    FlatFunction,
    ShapeDtypeStruct,
    abstractified,
    check_function,
    type_without_value,
)


def _split_static(
    fun: Any, static_argnums: int | Iterable[int], args: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """Return the function of the dynamic arguments; these; and `args` with None in place of the static ones."""
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    static = {i % len(args) if -len(args) <= i < len(args) else i for i in numbers}
    if not static:
        return fun, args, args

    @named_as(fun)
    def of_dynamic(*dynamic: object, **kwargs: Any) -> Any:
        values = iter(dynamic)
        return fun(*(x if i in static else next(values) for i, x in enumerate(args)), **kwargs)

    dynamic = tuple(x for i, x in enumerate(args) if i not in static)
    return of_dynamic, dynamic, tuple(None if i in static else x for i, x in enumerate(args))


def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Iterable[int] = (),
    axis_env: Iterable[tuple[object, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Return a function that traces `fun` and returns its `ClosedJaxpr`.

    Args:
        fun: function of arrays (in pytrees).
        static_argnums: positions of arguments that are not traced but passed to `fun` unchanged.
        axis_env: names and sizes of mapped axes that collectives in `fun` may use.
        return_shape: if True, return `(closed_jaxpr, shapes)`; `shapes` has the structure of the result, with
            `ShapeDtypeStruct`s as leaves.

    Raises:
        TypeError: an argument or an output is not an array.
    """
    check_function("make_jaxpr", fun)

    @named_as(fun)
    def jaxpr_of(*args: object, **kwargs: object) -> Any:
        axes = (named_axes(tuple(axis_env)),) if axis_env else ()
        try:
            jaxpr, consts, out_tree = run_within(axes, _trace, "make_jaxpr", fun, static_argnums, args, kwargs)
        except frames_left_out():
            raise
        closed = ClosedJaxpr(jaxpr, consts)
        if not return_shape:
            return closed
        shapes = [type_without_value(a) for a in closed.out_avals[: out_tree.num_leaves]]
        return closed, tree.tree_unflatten(out_tree, shapes)

    return jaxpr_of


def _trace(transform: str, fun: Any, static_argnums: Any, args: Any, kwargs: object) -> tuple[Any, list[Any], Any]:
    dynamic_fun, dynamic, named = _split_static(fun, static_argnums, args)
    leaves, in_tree = tree.tree_flatten((dynamic, kwargs))
    debug = DebugInfo(fun, transform, in_tree if named is dynamic else tree.tree_structure((named, kwargs)))
    avals = abstractified(transform, fun, leaves, debug.arg_names)
    flat = FlatFunction(dynamic_fun, in_tree, with_kwargs=True)
    jaxpr, consts, _ = stage_with_cells(flat, avals, debug)
    return jaxpr, consts, flat.out_tree


@api_boundary
def eval_shape(fun: Callable[..., object], *args: object, **kwargs: object) -> Any:
    """Return the shape and dtype of `fun(*args, **kwargs)` without computing it.

    Args:
        fun: function of arrays (in pytrees). Its result may contain `ShapeDtypeStruct`s.
        *args: arrays or `ShapeDtypeStruct`s (in pytrees).
        **kwargs: arrays or `ShapeDtypeStruct`s (in pytrees).

    Returns:
        The structure of the result, with `ShapeDtypeStruct`s as leaves.
    """
    if not callable(fun):
        raise TypeError(f"eval_shape takes a function, got {fun!r} of type {type(fun).__name__}")
    structs_and_tree: list[Any] = []

    @named_as(fun, updated=())
    def of_arrays(*args: object, **kwargs: object) -> Any:
        leaves, out_tree = tree.tree_flatten(fun(*args, **kwargs))
        # None in place of tracers, which must not leave this function.
        structs_and_tree[:] = [x if type(x) is ShapeDtypeStruct else None for x in leaves], out_tree
        return tree.tree_unflatten(out_tree, [None if type(x) is ShapeDtypeStruct else x for x in leaves])

    jaxpr, _, _ = _trace("eval_shape", of_arrays, (), args, kwargs)
    (leaves, out_tree), avals = structs_and_tree, iter(jaxpr.out_avals)
    types = [next(avals) if x is None else typeof(x) for x in leaves]
    return tree.tree_unflatten(out_tree, [type_without_value(a) for a in types])
