"""`linear_call`: a linear function with a custom transpose.

linear_call : res -> a -o b        given programs (res, a) -> b and (res, b) -> a
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    add_tangents,
    batch_jaxpr,
    defcall,
    fun_name,
    get_aval,
    inline_closed,
    inlining,
    instantiate,
    is_undef_primal,
    jvp_jaxpr,
    jvp_rules,
    memoised,
    split_list,
    spread_list,
    stage_closed,
    transpose_rules,
    tree,
    vmap_rules,
)
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import structural, tangent_aval, unmapped_aval, zero_cotangent
from corejax_control_flow.programs.messages import typed_tree
from corejax_control_flow.programs.tracing import check_leaves, same_type, trace, with_common_consts

linear_call_p = Primitive(
    "linear_call",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=inlining("callee"),
    doc="Call a linear program that has a custom transpose. Params: callee, num_res, transpose.",
)


@api_boundary
def linear_call(
    fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any
) -> Any:
    """Call a function that is linear in its second argument and has a custom transpose.

    Args:
        fun: function `(residuals, x) -> y`, linear in `x` (this is not checked).
        fun_transpose: function `(residuals, ct of y) -> ct of x`, linear in the cotangent. It is the transpose of
            `fun`, and `fun` is its transpose.
        residual_args: first argument, a pytree of arrays. Derivatives with respect to it are those of `fun`.
        linear_args: second argument, a pytree of arrays.

    Returns:
        `fun(residual_args, linear_args)`.

    Raises:
        TypeError: if the result of `fun_transpose` has another structure or type than `linear_args`, or an argument
            is not an array.
    """
    leaves, in_tree = check_leaves("linear_call", fun, (residual_args, linear_args), "args")
    res_tree, lin_tree = in_tree.children()
    avals = [get_aval(x) for x in leaves]
    res_avals, lin_avals = split_list(avals, [res_tree.num_leaves])
    callee = trace("linear_call", fun, in_tree, avals)
    ct_avals = [tangent_aval(a) for a in callee.jaxpr.out_avals]
    ct_tree = tree.treedef_tuple([res_tree, callee.out_tree])
    transpose = trace("linear_call", fun_transpose, ct_tree, [*res_avals, *ct_avals])
    got, wanted = transpose.jaxpr.out_avals, [tangent_aval(a) for a in lin_avals]
    if transpose.out_tree != lin_tree or not all(map(same_type, got, wanted)):
        raise TypeError(
            f"linear_call: the transpose {fun_name(fun_transpose)} must return cotangents of the linear arguments of "
            f"{fun_name(fun)}:\n  {typed_tree(lin_tree, wanted)}\nit returns\n  "
            f"{typed_tree(transpose.out_tree, got)}"
        )
    (callee_program, transpose_program), consts = with_common_consts([callee, transpose])
    outs = linear_call_p.bind(
        *consts,
        *leaves,
        callee=callee_program,
        num_res=len(consts) + len(res_avals),
        transpose=transpose_program,
    )
    return tree.tree_unflatten(callee.out_tree, outs)


defcall(linear_call_p, "callee", inline=True, rules=("impl", "abstract_eval", "xla_translation"))


@jvp_rules.register(linear_call_p, symbolic_zeros=True)
def linear_call_jvp(primals: Any, tangents: Any, *, callee: ClosedJaxpr, num_res: int, transpose: ClosedJaxpr) -> Any:
    """Apply the call to tangents of the linear operands, and differentiate the program with respect to residuals."""
    params = {"callee": callee, "num_res": num_res, "transpose": transpose}
    outs = linear_call_p.bind(*primals, **params)
    tangents_out: list[Any] = [None] * len(outs)
    residuals, linear = split_list(primals, [num_res])
    if any(t is not None for t in tangents[num_res:]):
        tangents_in = [instantiate(t, x) for t, x in zip(tangents[num_res:], linear, strict=True)]
        tangents_out = linear_call_p.bind(*residuals, *tangents_in, **params)
    nonzeros = [t is not None for t in tangents[:num_res]]
    if any(nonzeros):
        program, nonzeros_out = jvp_jaxpr(callee, [*nonzeros, *(False for _ in linear)])
        results = inline_closed(program, [*primals, *(t for t in tangents[:num_res] if t is not None)])
        by_residuals = spread_list(nonzeros_out, results[len(outs) :])
        tangents_out = [add_tangents(a, b) for a, b in zip(tangents_out, by_residuals, strict=True)]
    return outs, tangents_out


@transpose_rules.register(linear_call_p, symbolic_zeros=True)
def linear_call_transpose(
    cts: Sequence[Any], *operands: Any, callee: ClosedJaxpr, num_res: int, transpose: ClosedJaxpr
) -> list[Any]:
    """Bind a call of the transpose, with the program as its transpose."""
    residuals, linear = split_list(operands, [num_res])
    if any(is_undef_primal(x) for x in residuals):
        raise TypeError("linear_call: a residual is not linear, so the call is not transposed with respect to it")
    cts_out = [zero_cotangent(a) if ct is None else ct for ct, a in zip(cts, callee.out_avals, strict=True)]
    outs = linear_call_p.bind(*residuals, *cts_out, callee=transpose, num_res=num_res, transpose=callee)
    cts_in = [ct if is_undef_primal(x) else None for ct, x in zip(outs, linear, strict=True)]
    return [*(None for _ in residuals), *cts_in]


@vmap_rules.register(linear_call_p)
def linear_call_vmap(
    axis_size: int, vals: Any, dims: Any, *, callee: ClosedJaxpr, num_res: int, transpose: ClosedJaxpr
) -> Any:
    """Batch both programs; the batched transpose sums cotangents of unbatched operands."""
    batched, dims_out = batch_jaxpr(callee, axis_size, dims, True)
    res_dims, lin_dims = split_list(dims, [num_res])
    batched_transpose = memoised(
        transpose,
        ("linear_call vmap", axis_size, tuple(dims)),
        lambda: _batched_transpose(transpose, axis_size, res_dims, lin_dims),
    )
    outs = linear_call_p.bind(*vals, callee=batched, num_res=num_res, transpose=batched_transpose)
    return outs, dims_out


def _batched_transpose(
    transpose: ClosedJaxpr, axis_size: int, res_dims: Sequence[int | None], lin_dims: Sequence[int | None]
) -> ClosedJaxpr:
    dims = [*res_dims, *(0 for _ in transpose.in_avals[len(res_dims) :])]
    batched, _ = batch_jaxpr(transpose, axis_size, dims, True)

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(batched, args)
        return [
            _summed(x) if want is None else structural.move_axis(x, 0, want) if want else x
            for x, want in zip(outs, lin_dims, strict=True)
        ]

    avals = [unmapped_aval(axis_size, d, a) for d, a in zip(dims, transpose.in_avals, strict=True)]
    return stage_closed(flat, avals, transpose.jaxpr.debug_info)


def _summed(x: Any) -> Any:
    from corejax_lax_basic import lax

    return lax.reduce_sum(x, (0,))
