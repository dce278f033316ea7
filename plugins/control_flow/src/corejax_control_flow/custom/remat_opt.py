"""`remat_opt`: the forward pass of a `custom_vjp` function that becomes the function where residuals are not used.

remat_opt : a -> (b, res)        given programs a -> (b, res) and a -> b
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    batch_jaxpr,
    dce_rules,
    eval_jaxpr_on_host,
    impl_rules,
    inline_closed,
    jvp_jaxpr,
    jvp_rules,
    transpose_rules,
    vmap_rules,
)
from corejax_control_flow.custom.custom_jvp_rules import checked_out_avals, transposed_call
from corejax_control_flow.programs.rewriting import inlining, merged

remat_opt_p = Primitive(
    "remat_opt",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=inlining("fwd_jaxpr"),
    doc="Call a forward pass, or the function itself where the residuals are not used. Params: fun_jaxpr, fwd_jaxpr, "
    "name, num_res.",
)


@impl_rules.register(remat_opt_p)
def remat_opt_impl(*args: Any, fwd_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """The forward pass on NumPy arrays."""
    return eval_jaxpr_on_host(fwd_jaxpr, args)


@abstract_eval_rules.register(remat_opt_p)
def remat_opt_abstract_eval(*avals: ShapedArray, fwd_jaxpr: ClosedJaxpr, **params: Any) -> list[ShapedArray]:
    """The forward pass's type."""
    return checked_out_avals("remat_opt", fwd_jaxpr, avals)


@jvp_rules.register(remat_opt_p, symbolic_zeros=True)
def remat_opt_jvp(primals: Any, tangents: Any, *, fwd_jaxpr: ClosedJaxpr, **params: Any) -> Any:
    """The forward pass differentiated: residuals are in use where derivatives of it are."""
    pushed, nonzeros = jvp_jaxpr(fwd_jaxpr, [t is not None for t in tangents])
    outs = inline_closed(pushed, [*primals, *(t for t in tangents if t is not None)])
    count = len(nonzeros)
    return outs[:count], merged(nonzeros, outs[count:], [None] * nonzeros.count(False))


@vmap_rules.register(remat_opt_p)
def remat_opt_vmap(
    axis_size: int, vals: Any, dims: Any, *, fun_jaxpr: ClosedJaxpr, fwd_jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    """Both programs batched."""
    fwd, dims_out = batch_jaxpr(fwd_jaxpr, axis_size, dims, True)
    fun, _ = batch_jaxpr(fun_jaxpr, axis_size, dims, True)
    return remat_opt_p.bind(*vals, fun_jaxpr=fun, fwd_jaxpr=fwd, **params), dims_out


@transpose_rules.register(remat_opt_p, symbolic_zeros=True)
def remat_opt_transpose(cts: Sequence[Any], *operands: Any, fwd_jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """The transposed forward pass."""
    return transposed_call(fwd_jaxpr, cts, operands)


def remat_opt_dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Call the function where no residual is used."""
    num_res = eqn.params["num_res"]
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    if num_res and not any(used_outputs[len(used_outputs) - num_res :]):
        fun = eqn.params["fun_jaxpr"]
        outvars = eqn.outvars[: len(eqn.outvars) - num_res]
        eqn = eqn.replace(outvars=outvars, params={**eqn.params, "fwd_jaxpr": fun, "num_res": 0})
    return [True] * len(eqn.invars), eqn


dce_rules[remat_opt_p] = remat_opt_dce

__all__ = ["remat_opt_p"]
