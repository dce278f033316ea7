"""`custom_root`: find roots, with derivatives by the implicit function theorem and not of the solver.

For f(x, p) = 0:  dx = -(df/dx)^-1 (df/dp dp).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from corejax.extend import (
    ClosedJaxpr,
    ShapedArray,
    close_over_consts,
    fun_name,
    get_aval,
    inline_closed,
    instantiate,
    jvp_flat,
    jvp_jaxpr,
    partial_eval_jaxpr,
    split_list,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax_control_flow.custom.custom_jvp import custom_jvp
from corejax_control_flow.custom.symbolic_zeros import SymbolicZero
from corejax_control_flow.programs.messages import check_functions
from corejax_control_flow.programs.tracing import Traced, check_leaves, trace
from corejax_control_flow.solvers._programs import check_returns, negated, on_trees, solver_program

R = TypeVar("R")


@api_boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], R],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> R:
    """Find a root x of `f` by `solve`, with derivatives by implicit differentiation.

    Derivatives are those of the equation `f(x) = 0`, with respect to the values that `f` closes over, in forward and
    reverse mode. The solver itself is not differentiated; the derivative with respect to the initial guess is zero.

    Args:
        f: function that keeps the structure and types of the guess.
        initial_guess: initial value of x, a pytree of arrays.
        solve: function `(f, initial_guess) -> x`, or `(x, aux)` with `has_aux`.
        tangent_solve: function `(g, y) -> x` that solves `g(x) = y` for linear g. For reverse mode it must be
            transposable: a division for scalars, `custom_linear_solve` in general.
        has_aux: True if `solve` returns `(x, aux)`; aux is not differentiated.

    Returns:
        x, or `(x, aux)`.

    Raises:
        TypeError: if a result of `f` or of a solver has another structure or type than the guess.
    """
    check_functions("custom_root", f=f, solve=solve, tangent_solve=tangent_solve)
    leaves, in_tree = check_leaves("custom_root", f, initial_guess, "initial_guess")
    avals = [get_aval(x) for x in leaves]
    recorded = _traced(f, in_tree, avals)
    program = close_over_consts(recorded.jaxpr)
    own = on_trees(_CALLS, program, recorded.consts, in_tree)
    what = f"custom_root: the solver {fun_name(solve)}"
    solver, solve_consts, out_tree = solver_program(
        "custom_root", what, "initial guess", solve, own, in_tree, avals, has_aux
    )
    num_consts, count = len(recorded.consts), len(leaves)

    def root(*args: Any) -> list[Any]:
        return inline_closed(solver, args[num_consts:])

    def root_jvp(primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        outs = solution(*primals)
        x = outs[:count]
        consts, const_dots = primals[:num_consts], tangents[:num_consts]
        # Zeros and `float0` tangents, the only ones with a structured dtype, become None.
        const_dots = [None if isinstance(t, SymbolicZero) or t.dtype.names else t for t in const_dots]
        _, rhs = jvp_flat(lambda *own: inline_closed(program, [*own, *x]), consts, const_dots)
        zeros: list[Any] = [None] * len(outs)
        if all(t is None for t in rhs):
            return outs, zeros
        y = [instantiate(t, each) for t, each in zip(rhs, x, strict=True)]
        result = _solve_tangents(tangent_solve, _linearised(program, consts, x, in_tree), y, in_tree, avals)
        return outs, [*map(negated, result), *zeros[count:]]

    root.__name__ = fun_name(solve)
    solution = custom_jvp(root)
    solution.defjvp(root_jvp, symbolic_zeros=True)
    outs = solution(*recorded.consts, *solve_consts, *leaves)
    return tree.tree_unflatten(out_tree, outs)  # type: ignore[no-any-return]  # unflattening loses the type


_CALLS = "custom_root: a solver calls its function"


def _traced(f: Any, in_tree: Any, avals: Sequence[ShapedArray]) -> Traced:
    """Trace the function whose root is wanted, and check that it keeps structure and types of the guess."""
    recorded = trace("custom_root", f, tree.treedef_tuple([in_tree]), avals)
    what = f"custom_root: the function {fun_name(f)}"
    check_returns(what, "initial guess", in_tree, avals, recorded.out_tree, recorded.jaxpr.out_avals)
    return recorded


def _solve_tangents(
    tangent_solve: Any, linear: Callable[[Any], Any], y: list[Any], in_tree: Any, avals: Sequence[ShapedArray]
) -> list[Any]:
    """Solve `linear(x) = y` by the user's function, and return the leaves of x."""
    result, result_tree = tree.tree_flatten(tangent_solve(linear, tree.tree_unflatten(in_tree, y)))
    what = f"custom_root: the tangent solver {fun_name(tangent_solve)}"
    check_returns(what, "initial guess", in_tree, avals, result_tree, [get_aval(t) for t in result])
    return result


def _linearised(program: ClosedJaxpr, consts: Sequence[Any], x: Sequence[Any], in_tree: Any) -> Callable[[Any], Any]:
    """Return the derivative of a program with respect to its last arguments, as a linear function of tangents.

    The primal part is computed once, not at each call of the function.
    """
    count = len(x)
    jvp_program, _ = jvp_jaxpr(program, [False] * len(consts) + [True] * count, True)
    unknown = [False] * len(program.in_avals) + [True] * count
    known, linear, _, _ = partial_eval_jaxpr(jvp_program, unknown, [False] * count + [True] * count)
    _, residuals = split_list(inline_closed(known, [*consts, *x]), [count])
    return on_trees(_CALLS, linear, residuals, in_tree)
