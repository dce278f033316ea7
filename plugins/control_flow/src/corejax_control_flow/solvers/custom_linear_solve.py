"""`custom_linear_solve`: solve linear equations, with derivatives of the equation and not of the solver.

    custom_linear_solve : consts -> b -o x        given programs A : x -o b and solve : b -> x, and their transposes

For A x = b:  dx = A^-1 (db - dA x), and cotangents of b are solutions of the transposed equation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    add_tangents,
    batch_jaxpr,
    close_over_consts,
    eval_jaxpr_on_host,
    fun_name,
    get_aval,
    impl_rules,
    inline_closed,
    instantiate,
    is_undef_primal,
    jvp_jaxpr,
    jvp_rules,
    move_batch_axis,
    split_list,
    spread_list,
    transpose_jaxpr,
    transpose_rules,
    tree,
    vmap_rules,
)
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import zero_cotangent
from corejax_control_flow.programs.messages import check_functions
from corejax_control_flow.programs.rewriting import with_outputs
from corejax_control_flow.programs.tracing import check_leaves, trace
from corejax_control_flow.solvers._programs import check_returns, negated, on_trees, solver_program


def _solved(*args: Any, const_lengths: Any, solve: ClosedJaxpr, **params: Any) -> list[Any]:
    """Inline the solver's program, as the decomposition."""
    _, _, consts, _, b = split_list(args, const_lengths)
    return inline_closed(solve, [*consts, *b])


custom_linear_solve_p = Primitive(
    "custom_linear_solve",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=_solved,
    doc="Solve a linear equation. Params: const_lengths (numbers of operands for matvec, vecmat, solve, "
    "transpose_solve, which precede the right-hand side), matvec, solve, transpose_solve, vecmat.",
)


R = TypeVar("R")


@api_boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[..., R],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> R:
    """Solve the linear equation `matvec(x) = b` by `solve`, with derivatives by implicit differentiation.

    Derivatives are those of the equation, with respect to `b` and to the values that `matvec` closes over. The solver
    itself is not differentiated, so it may iterate.

    Args:
        matvec: linear function (this is not checked) that keeps the structure and types of `b`; it may close over
            arrays and tracers.
        b: right-hand side, a pytree of arrays.
        solve: function `(matvec, b) -> x`, or `(x, aux)` with `has_aux`.
        transpose_solve: function `(vecmat, b) -> x` that solves with the transpose of `matvec`, for reverse mode.
        symmetric: True if `matvec` is its own transpose (without conjugation of complex values); `solve` then also
            serves as `transpose_solve`.
        has_aux: True if solvers return `(x, aux)`; aux is not differentiated.

    Returns:
        x, or `(x, aux)`.

    Raises:
        TypeError: if a result of `matvec` or of a solver has another structure or type than `b`; on transposition, if
            `transpose_solve` is missing.
    """
    optional = {} if transpose_solve is None else {"transpose_solve": transpose_solve}
    check_functions("custom_linear_solve", matvec=matvec, solve=solve, **optional)
    leaves, in_tree = check_leaves("custom_linear_solve", solve, b, "b")
    avals = [get_aval(x) for x in leaves]
    of_b = tree.treedef_tuple([in_tree])
    recorded = trace("custom_linear_solve", matvec, of_b, avals)
    what, out_avals = f"custom_linear_solve: matvec {fun_name(matvec)}", recorded.jaxpr.out_avals
    check_returns(what, "right-hand side", in_tree, avals, recorded.out_tree, out_avals)
    forward = close_over_consts(recorded.jaxpr)
    solver, consts, out_tree = _solver(solve, forward, recorded.consts, in_tree, avals, has_aux)
    backward = transposed_solver = None
    vec_consts: Sequence[Any] = ()
    transposed_consts: Sequence[Any] = ()
    if symmetric and transpose_solve is None:
        transpose_solve = solve
    if transpose_solve is not None:
        backward = forward if symmetric else _transposed(forward, len(recorded.consts))
        vec_consts = recorded.consts
        transposed_solver, transposed_consts, _ = _solver(
            transpose_solve, backward, vec_consts, in_tree, avals, has_aux
        )
    outs = custom_linear_solve_p.bind(
        *recorded.consts,
        *vec_consts,
        *consts,
        *transposed_consts,
        *leaves,
        const_lengths=tuple(map(len, (recorded.consts, vec_consts, consts, transposed_consts))),
        matvec=forward,
        solve=solver,
        transpose_solve=transposed_solver,
        vecmat=backward,
    )
    return tree.tree_unflatten(out_tree, outs)  # type: ignore[no-any-return]  # unflattening loses the type


def _transposed(program: ClosedJaxpr, num_consts: int) -> ClosedJaxpr:
    """Return the transposed linear program `(consts, ct) -> ct`."""
    count = len(program.out_avals)
    linear = [False] * num_consts + [True] * count
    transposed, nonzeros = transpose_jaxpr(program, linear, [True] * count)
    numbers = iter(range(count))
    avals = program.in_avals[num_consts:]
    return with_outputs(
        transposed, [next(numbers) if nz else a.strip_weak_type() for nz, a in zip(nonzeros, avals, strict=True)]
    )


def _solver(
    solve: Any, program: ClosedJaxpr, consts: Sequence[Any], in_tree: Any, avals: Any, has_aux: bool
) -> tuple[ClosedJaxpr, list[Any], Any]:
    """Trace a solver to a program of its closed-over values and the right-hand side."""
    matvec = on_trees(f"custom_linear_solve: {fun_name(solve)} calls its linear function", program, consts, in_tree)
    what = f"custom_linear_solve: solver {fun_name(solve)}"
    return solver_program("custom_linear_solve", what, "right-hand side", solve, matvec, in_tree, avals, has_aux)


# -- the primitive's rules -----------------------------------------------------------------------------------


@impl_rules.register(custom_linear_solve_p)
def custom_linear_solve_impl(*args: Any, const_lengths: Any, solve: ClosedJaxpr, **params: Any) -> list[Any]:
    """Run the solver on NumPy arrays."""
    _, _, consts, _, b = split_list(args, const_lengths)
    return eval_jaxpr_on_host(solve, [*consts, *b])


@abstract_eval_rules.register(custom_linear_solve_p)
def custom_linear_solve_abstract_eval(
    *avals: ShapedArray, const_lengths: Any, solve: ClosedJaxpr, **params: Any
) -> list[ShapedArray]:
    """Check the operands and return the types of the solver's results."""
    _, _, consts, _, b = split_list(avals, const_lengths)
    operands, expected = [*consts, *b], solve.in_avals
    if [(a.shape, a.dtype) for a in operands] != [(a.shape, a.dtype) for a in expected]:
        types = [", ".join(a.str_short() for a in each) for each in (expected, operands)]
        raise TypeError(f"custom_linear_solve: the solver takes operands of types ({types[0]}), got ({types[1]})")
    return solve.out_avals


@jvp_rules.register(custom_linear_solve_p, symbolic_zeros=True)
def custom_linear_solve_jvp(
    primals: Any, tangents: Any, *, const_lengths: Any, matvec: ClosedJaxpr, **params: Any
) -> Any:
    """Solve again for the tangent, with the right-hand side db - dA x."""
    outs = custom_linear_solve_p.bind(*primals, const_lengths=const_lengths, matvec=matvec, **params)
    consts, b = list(primals[: sum(const_lengths)]), primals[sum(const_lengths) :]
    x = outs[: len(b)]
    rhs = list(tangents[sum(const_lengths) :])
    matvec_dots = tangents[: const_lengths[0]]
    nonzeros = [t is not None for t in matvec_dots]
    if any(nonzeros):
        program, nonzeros_out = jvp_jaxpr(matvec, [*nonzeros, *(False for _ in b)])
        operands = [*consts[: const_lengths[0]], *x, *(t for t in matvec_dots if t is not None)]
        products = spread_list(nonzeros_out, inline_closed(program, operands)[len(b) :])  # dA x
        rhs = [add_tangents(t, None if c is None else negated(c)) for t, c in zip(rhs, products, strict=True)]
    if all(t is None for t in rhs):
        return outs, [None] * len(outs)
    rhs = [instantiate(t, each) for t, each in zip(rhs, b, strict=True)]
    solved = custom_linear_solve_p.bind(*consts, *rhs, const_lengths=const_lengths, matvec=matvec, **params)
    return outs, [*solved[: len(b)], *(None for _ in outs[len(b) :])]


@transpose_rules.register(custom_linear_solve_p, symbolic_zeros=True)
def custom_linear_solve_transpose(
    cts: Sequence[Any],
    *operands: Any,
    const_lengths: Any,
    matvec: ClosedJaxpr,
    solve: ClosedJaxpr,
    transpose_solve: ClosedJaxpr | None,
    vecmat: ClosedJaxpr | None,
) -> list[Any]:
    """Solve the transposed equation for the cotangents of the right-hand side."""
    if transpose_solve is None:
        raise TypeError(
            "custom_linear_solve: reverse mode solves the transposed equation, for which it needs a solver; pass "
            "transpose_solve, or symmetric=True if the linear function is its own transpose"
        )
    matvec_consts, vecmat_consts, solve_consts, transpose_consts, b = split_list(operands, const_lengths)
    if all(ct is None for ct in cts[: len(b)]):
        return [None] * len(operands)
    linear = [is_undef_primal(x) for x in b]
    avals = solve.out_avals[: len(b)]
    rhs = [zero_cotangent(a) if ct is None else ct for ct, a in zip(cts, avals, strict=False)]
    outs = custom_linear_solve_p.bind(
        *vecmat_consts,
        *matvec_consts,
        *transpose_consts,
        *solve_consts,
        *rhs,
        const_lengths=tuple(map(len, (vecmat_consts, matvec_consts, transpose_consts, solve_consts))),
        matvec=vecmat,
        solve=transpose_solve,
        transpose_solve=solve,
        vecmat=matvec,
    )
    cts_in = [ct if lin else None for ct, lin in zip(outs, linear, strict=False)]
    return [*(None for _ in range(sum(const_lengths))), *cts_in]


@vmap_rules.register(custom_linear_solve_p)
def custom_linear_solve_vmap(axis_size: int, vals: Any, dims: Any, *, const_lengths: Any, **programs: Any) -> Any:
    """Solve the batched equation."""
    *program_dims, b_dims = split_list(dims, const_lengths)
    params: dict[str, Any] = {}
    dims_out: list[Any] = []
    for name, const_dims in zip(("matvec", "vecmat", "solve", "transpose_solve"), program_dims, strict=True):
        program = programs[name]
        if program is not None:
            program, own = batch_jaxpr(program, axis_size, [*const_dims, *(0 for _ in b_dims)], True)
            dims_out = own if name == "solve" else dims_out
        params[name] = program
    start = sum(const_lengths)
    b = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals[start:], b_dims, strict=True)]
    outs = custom_linear_solve_p.bind(*vals[:start], *b, const_lengths=const_lengths, **params)
    return outs, dims_out
