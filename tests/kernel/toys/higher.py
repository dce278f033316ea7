"""A higher-order primitive: a program called, with every rule by `defcall`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive, close_over_consts, defcall, get_aval, stage, tree

__all__ = ["call", "closed_call_p"]


closed_call_p = Primitive("toy.closed_call", multiple_results=True, tags=("higher_order",))
defcall(closed_call_p, without=("recompute",))  # policies do not look into it


def call(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function staged at each call and called as a program; what it closes over becomes operands."""

    def called(*args: Any) -> Any:
        leaves, in_tree = tree.tree_flatten(args)
        out_trees = []

        def flat(*flat_args: Any) -> list[Any]:
            outs, out_tree = tree.tree_flatten(fun(*tree.tree_unflatten(in_tree, flat_args)))
            out_trees.append(out_tree)
            return outs

        jaxpr, consts = stage(flat, [get_aval(x) for x in leaves])
        outs = closed_call_p.bind(*consts, *leaves, jaxpr=close_over_consts(jaxpr))
        return tree.tree_unflatten(out_trees[0], outs)

    return called
