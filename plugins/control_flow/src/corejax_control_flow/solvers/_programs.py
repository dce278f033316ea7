"""Solvers as programs: what `custom_linear_solve` and `custom_root` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, ShapedArray, close_over_consts, fun_name, inline_closed, tree
from corejax_control_flow.programs.messages import typed_tree
from corejax_control_flow.programs.tracing import trace


def check_returns(
    what: str, like: str, in_tree: Any, avals: Sequence[ShapedArray], out_tree: Any, got: Sequence[ShapedArray]
) -> None:
    """Require that a function returns a value of the structure and types of its argument.

    Raises:
        TypeError: it does not; `what` names the function, and `like` the argument.
    """
    if out_tree != in_tree or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(got, avals, strict=True)):
        raise TypeError(
            f"{what} has to return what the {like} is:\n  {typed_tree(in_tree, avals)}\n"
            f"it returns\n  {typed_tree(out_tree, got)}"
        )


def on_trees(what: str, program: ClosedJaxpr, leading: Sequence[Any], in_tree: Any) -> Callable[[Any], Any]:
    """Return a program as a function of one pytree, its last arguments; `leading` are its first arguments."""

    def fun(x: Any) -> Any:
        leaves, treedef = tree.tree_flatten(x)
        if treedef != in_tree:
            raise TypeError(f"{what} on structure {treedef}, not {in_tree}")
        return tree.tree_unflatten(in_tree, inline_closed(program, [*leading, *leaves]))

    return fun


def solver_program(
    name: str, what: str, like: str, solve: Any, fun: Any, in_tree: Any, avals: Sequence[ShapedArray], has_aux: bool
) -> tuple[ClosedJaxpr, list[Any], Any]:
    """Trace `solve(fun, x)` as a program of what it closes over and x; return also those values and its structure.

    Args:
        name: the function that was called, for messages.
        what, like: as for `check_returns`.
        solve: the user's solver.
        fun: the function that it solves.
        in_tree, avals: structure and types of x.
        has_aux: whether the solver returns `(x, aux)`.
    """

    def solution(x: Any) -> Any:
        out = solve(fun, x)
        if has_aux and (not isinstance(out, tuple | list) or len(out) != 2):
            raise TypeError(f"{name} with has_aux=True: {fun_name(solve)} returns (x, aux), got {out!r}")
        return tuple(out) if has_aux else out

    solution.__name__ = fun_name(solve)
    recorded = trace(name, solution, tree.treedef_tuple([in_tree]), avals)
    x_tree = recorded.out_tree.children()[0] if has_aux else recorded.out_tree
    check_returns(what, like, in_tree, avals, x_tree, recorded.jaxpr.out_avals[: x_tree.num_leaves])
    return close_over_consts(recorded.jaxpr), recorded.consts, recorded.out_tree


def negated(x: Any) -> Any:
    """Return `-x`."""
    from corejax_lax_basic import lax

    return lax.neg(x)
