"""`custom_gradient` and `closure_convert`: rules as closures, and closures as functions of what they close over."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import (
    DebugInfo,
    Jaxpr,
    ShapedArray,
    Tracer,
    dtypes,
    fun_name,
    get_aval,
    leaf_names,
    merge_lists,
    partition_list,
    stage,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.programs import eval_jaxpr, select_list
from corejax.extend.transforms import check_outputs, float0, named_as, tangent_aval
from corejax_control_flow.custom._arguments import Parameters
from corejax_control_flow.custom.custom_vjp import custom_vjp
from corejax_control_flow.programs.messages import shown, typed_tree
from corejax_control_flow.programs.tracing import check_leaves, trace


def custom_gradient(fun: Callable[..., Any]) -> custom_vjp:
    """A function that returns its result together with its backward pass; a decorator.

        @custom_gradient
        def f(x):
            return x**2, lambda ct: (ct * x,)

    Args:
        fun: returns `(out, pull)`; `pull(ct)` takes a cotangent of the structure of `out` and returns a tuple with a
            cotangent for each argument (or the one cotangent itself), None for zero. Arguments that a call leaves to
            their defaults may have none.

    Returns:
        The function of `out` alone, as `custom_vjp` makes it: reverse mode only.

    Raises:
        TypeError: `fun` does not return a pair of a result and a function.
    """

    @named_as(fun, functools.WRAPPER_ASSIGNMENTS)
    def value(*args: Any, **kwargs: Any) -> Any:
        return _pair(fun, fun(*args, **kwargs))[0]

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, pull = _pair(fun, fun(*args))
        return out, _Staged.of(pull, out, len(args))

    def bwd(residuals: _Staged, ct: Any) -> Any:
        cts = residuals(ct)
        if not isinstance(cts, tuple | list):
            return (cts,)
        with_defaults = residuals.given < len(cts) <= len(parameters.names)
        return tuple(cts[: residuals.given] if with_defaults else cts)

    wrapped = custom_vjp(value)
    parameters = wrapped._parameters = Parameters(value, (), defaults=False)
    fwd.__name__ = bwd.__name__ = fun_name(fun)
    wrapped.defvjp(fwd, bwd)
    return wrapped


def _pair(fun: Any, result: Any) -> Any:
    if not isinstance(result, tuple | list) or len(result) != 2 or not callable(result[1]):
        raise TypeError(
            f"custom_gradient: {fun_name(fun)} returns a pair (out, function from the cotangent of out to cotangents "
            f"of the arguments), got {result!r}"
        )
    return result


class _Staged:
    """A backward pass as a pytree: its program, with the values that it closes over as leaves.

    Attributes:
        given: how many arguments the call had, without defaults.
    """

    def __init__(self, jaxpr: Jaxpr, out_tree: Any, consts: Any, given: int) -> None:
        self.jaxpr = jaxpr
        self.out_tree = out_tree
        self.consts = consts
        self.given = given

    @classmethod
    def of(cls, pull: Callable[..., Any], out: Any, given: int) -> _Staged:
        """Trace a function of one cotangent."""
        outs, treedef = tree.tree_flatten(out)
        avals = [get_aval(x) for x in outs]
        moves = [dtypes.is_inexact(a.dtype) for a in avals]
        trees: list[Any] = []

        def flat(*cts: Any) -> list[Any]:
            nothing = [np.zeros(a.shape, float0) for a, m in zip(avals, moves, strict=True) if not m]
            leaves, out_tree = tree.tree_flatten(pull(tree.tree_unflatten(treedef, merge_lists(moves, nothing, cts))))
            check_outputs(pull, leaves, out_tree)
            trees.append(out_tree)
            return leaves

        jaxpr, consts = stage(
            flat, [tangent_aval(a) for a in select_list(moves, avals)], DebugInfo(pull, "custom_gradient")
        )
        return cls(jaxpr, trees[0], consts, given)

    def __call__(self, ct: Any) -> Any:
        leaves = [x for x in tree.tree_leaves(ct) if getattr(x, "dtype", None) != float0]
        return tree.tree_unflatten(self.out_tree, eval_jaxpr(self.jaxpr, self.consts, leaves))


tree.register_pytree_node(
    _Staged,
    lambda s: (tuple(s.consts), (s.jaxpr, s.out_tree, s.given)),
    lambda aux, consts: _Staged(aux[0], aux[1], list(consts), aux[2]),
)


@api_boundary
def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A function without closed-over traced values, and those values.

    For functions that get a function as an argument and give it to one with rules of its own, which cannot close over
    what is being differentiated.

    Args:
        fun: function of pytrees of arrays.
        example_args: arguments of the types that it will be called with.

    Returns:
        `(converted, consts)`: `converted(*args, *consts)` is `fun(*args)`. `consts` are the closed-over tracers of
        floating-point (or complex) values; all else stays inside.

    Raises:
        TypeError: an argument is not an array; or `converted` is called on other types or structures.
    """
    leaves, in_tree = check_leaves("closure_convert", fun, example_args, "example_args")
    avals = [get_aval(x) for x in leaves]
    jaxpr, consts, out_tree = trace("closure_convert", fun, in_tree, avals)
    hoisted = [isinstance(c, Tracer) and dtypes.is_inexact(get_aval(c).dtype) for c in consts]
    kept = partition_list(hoisted, consts)[0]
    count = len(example_args)
    if not consts and "converted" in jaxpr.memo:  # the program is kept, so that the function is the same one each time
        return jaxpr.memo["converted"], []

    @named_as(fun, updated=())
    def converted(*args_and_consts: Any) -> Any:
        args, given = args_and_consts[:count], args_and_consts[count:]
        if len(given) != sum(hoisted):
            raise TypeError(
                f"the converted {fun_name(fun)} takes {count} arguments and {sum(hoisted)} consts, got "
                f"{len(args_and_consts)} arguments in all"
            )
        own, own_tree = tree.tree_flatten(args)
        _check_types(fun, in_tree, avals, own_tree, [get_aval(x) for x in own])
        return tree.tree_unflatten(out_tree, eval_jaxpr(jaxpr, merge_lists(hoisted, kept, given), own))

    if not consts:
        jaxpr.memo["converted"] = converted
    return converted, select_list(hoisted, consts)


def _check_types(fun: Any, in_tree: Any, avals: list[ShapedArray], own_tree: Any, own: list[ShapedArray]) -> None:
    if own_tree != in_tree:
        raise TypeError(
            f"the converted {fun_name(fun)} takes arguments of the structure of the examples:\n"
            f"  {typed_tree(in_tree, avals)}\ngot\n  {typed_tree(own_tree, own)}"
        )
    for i, (a, b) in enumerate(zip(avals, own, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            name = leaf_names(in_tree, "args")[i]
            raise TypeError(f"the converted {fun_name(fun)}: {name} was {shown(a)} in the examples, got {shown(b)}")
