"""Tracing and checks of solvers, shared by `custom_linear_solve` and `custom_root`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, ShapedArray, close_over_consts, fun_name, inline_closed, tree
from corejax_control_flow.programs.messages import typed_tree
from corejax_control_flow.programs.tracing import same_type, trace


def check_returns(
    what: str, like: str, in_tree: Any, avals: Sequence[ShapedArray], out_tree: Any, got: Sequence[ShapedArray]
) -> None:
    """Check that a function returns a value of the structure and types of its argument.

    Raises:
        TypeError: if it does not. The message names the function by `what` and the argument by `like`.
    """
    if out_tree != in_tree or not all(map(same_type, got, avals)):
        raise TypeError(
            f"{what} must return the structure and types of the {like}:\n  {typed_tree(in_tree, avals)}\n"
            f"it returns\n  {typed_tree(out_tree, got)}"
        )


def on_trees(what: str, program: ClosedJaxpr, leading: Sequence[Any], in_tree: Any) -> Callable[[Any], Any]:
    """Return a function of one pytree that passes `leading` and the pytree's leaves to a program."""

    def fun(x: Any) -> Any:
        leaves, treedef = tree.tree_flatten(x)
        if treedef != in_tree:
            raise TypeError(f"{what} on structure {treedef}, not {in_tree}")
        return tree.tree_unflatten(in_tree, inline_closed(program, [*leading, *leaves]))

    return fun


def solver_program(
    name: str, what: str, like: str, solve: Any, fun: Any, in_tree: Any, avals: Sequence[ShapedArray], has_aux: bool
) -> tuple[ClosedJaxpr, list[Any], Any]:
    """Trace `solve(fun, x)`.

    Args:
        name: name of the public function, for messages.
        what: name of the solver, for messages.
        like: name of x, for messages.
        solve: the user's solver.
        fun: the function that it solves.
        in_tree: structure of x.
        avals: types of x.
        has_aux: True if the solver returns `(x, aux)`.

    Returns:
        The program of the closed-over values and x, the closed-over values, and the structure of the result.
    """

    def solution(x: Any) -> Any:
        out = solve(fun, x)
        if has_aux and (not isinstance(out, tuple | list) or len(out) != 2):
            raise TypeError(f"{name} with has_aux=True: {fun_name(solve)} must return (x, aux), got {out!r}")
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
