"""`custom_gradient`, with the backward pass as a closure, and `closure_convert`, which hoists closed-over values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

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
from corejax_control_flow.programs.tracing import check_leaves, same_type, trace

P = ParamSpec("P")
R = TypeVar("R")


def custom_gradient(fun: Callable[P, tuple[R, Any]]) -> custom_vjp[P, R]:
    """Decorate a function that returns its result together with its backward pass.

        @custom_gradient
        def f(x):
            return x**2, lambda ct: (ct * x,)

    Args:
        fun: function that returns `(out, pull)`; `pull(ct)` takes a cotangent of the structure of `out` and returns a
            tuple with a cotangent for each argument, None for zero, or a single cotangent. Cotangents of arguments
            that a call does not pass are ignored.

    Returns:
        The function that returns only `out`. It is a `custom_vjp` function, so it supports reverse mode only.

    Raises:
        TypeError: if `fun` does not return a pair of a result and a function.
    """

    @named_as(fun, functools.WRAPPER_ASSIGNMENTS)
    def value(*args: Any, **kwargs: Any) -> Any:
        return _pair(fun, fun(*args, **kwargs))[0]

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, pull = _pair(fun, fun(*args))  # type: ignore[call-arg]  # calls bind keywords to positions
        return out, _StagedPullback.of(pull, out, len(args))

    def bwd(residuals: _StagedPullback, ct: Any) -> Any:
        cts = residuals(ct)
        if not isinstance(cts, tuple | list):
            return (cts,)
        with_defaults = residuals.num_args < len(cts) <= len(parameters.names)
        return tuple(cts[: residuals.num_args] if with_defaults else cts)

    wrapped = custom_vjp(value)
    parameters = wrapped._parameters = Parameters(value, (), defaults=False)
    fwd.__name__ = bwd.__name__ = fun_name(fun)
    wrapped.defvjp(fwd, bwd)
    return wrapped  # type: ignore[return-value]  # `value` takes what `fun` takes


def _pair(fun: Any, result: Any) -> Any:
    if not isinstance(result, tuple | list) or len(result) != 2 or not callable(result[1]):
        raise TypeError(
            f"custom_gradient: {fun_name(fun)} must return a pair (out, function from the cotangent of out to "
            f"cotangents of the arguments), got {result!r}"
        )
    return result


class _StagedPullback:
    """A backward pass as a pytree: a jaxpr, with the values that the pass closes over as leaves.

    Attributes:
        num_args: number of arguments of the call, without defaults.
    """

    def __init__(self, jaxpr: Jaxpr, out_tree: Any, consts: Any, num_args: int) -> None:
        self.jaxpr = jaxpr
        self.out_tree = out_tree
        self.consts = consts
        self.num_args = num_args

    @classmethod
    def of(cls, pull: Callable[..., Any], out: Any, num_args: int) -> _StagedPullback:
        """Trace a function of one cotangent."""
        outs, treedef = tree.tree_flatten(out)
        avals = [get_aval(x) for x in outs]
        inexact = [dtypes.is_inexact(a.dtype) for a in avals]
        trees: list[Any] = []

        def flat(*cts: Any) -> list[Any]:
            zeros = [np.zeros(a.shape, float0) for a, flag in zip(avals, inexact, strict=True) if not flag]
            leaves, out_tree = tree.tree_flatten(pull(tree.tree_unflatten(treedef, merge_lists(inexact, zeros, cts))))
            check_outputs(pull, leaves, out_tree)
            trees.append(out_tree)
            return leaves

        jaxpr, consts = stage(
            flat, [tangent_aval(a) for a in select_list(inexact, avals)], DebugInfo(pull, "custom_gradient")
        )
        return cls(jaxpr, trees[0], consts, num_args)

    def __call__(self, ct: Any) -> Any:
        leaves = [x for x in tree.tree_leaves(ct) if getattr(x, "dtype", None) != float0]
        return tree.tree_unflatten(self.out_tree, eval_jaxpr(self.jaxpr, self.consts, leaves))


tree.register_pytree_node(
    _StagedPullback,
    lambda s: (tuple(s.consts), (s.jaxpr, s.out_tree, s.num_args)),
    lambda aux, consts: _StagedPullback(aux[0], aux[1], list(consts), aux[2]),
)


@api_boundary
def closure_convert(fun: Callable[..., R], *example_args: Any) -> tuple[Callable[..., R], list[Any]]:
    """Convert the closed-over tracers of a function to arguments.

    A function with custom rules cannot close over values that are being differentiated. A function that receives a
    callable and passes it to such a function uses `closure_convert` to pass the callable's closed-over values as well.

    Args:
        fun: function of pytrees of arrays.
        *example_args: arguments of the types and structures with which it will be called.

    Returns:
        `(converted, consts)` such that `converted(*args, *consts)` equals `fun(*args)`. `consts` are the closed-over
        tracers of floating-point or complex values; other closed-over values stay inside.

    Raises:
        TypeError: if an argument is not an array, or `converted` is called on other types or structures.
    """
    leaves, in_tree = check_leaves("closure_convert", fun, example_args, "example_args")
    avals = [get_aval(x) for x in leaves]
    jaxpr, consts, out_tree, _ = trace("closure_convert", fun, in_tree, avals)
    hoisted = [isinstance(c, Tracer) and dtypes.is_inexact(get_aval(c).dtype) for c in consts]
    kept = partition_list(hoisted, consts)[0]
    count = len(example_args)
    # Equal programs are one cached object, so that the converted function is the same at each call.
    if not consts and "converted" in jaxpr.memo:
        return jaxpr.memo["converted"], []

    @named_as(fun, updated=())
    def converted(*args_and_consts: Any) -> Any:
        args, hoisted_consts = args_and_consts[:count], args_and_consts[count:]
        if len(hoisted_consts) != sum(hoisted):
            raise TypeError(
                f"the converted {fun_name(fun)} takes {count} arguments and {sum(hoisted)} consts, got "
                f"{len(args_and_consts)} arguments in all"
            )
        own, own_tree = tree.tree_flatten(args)
        _check_types(fun, in_tree, avals, own_tree, [get_aval(x) for x in own])
        return tree.tree_unflatten(out_tree, eval_jaxpr(jaxpr, merge_lists(hoisted, kept, hoisted_consts), own))

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
        if not same_type(a, b):
            name = leaf_names(in_tree, "args")[i]
            raise TypeError(f"the converted {fun_name(fun)}: {name} was {shown(a)} in the examples, got {shown(b)}")
