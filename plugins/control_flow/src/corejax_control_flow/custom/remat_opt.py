"""`remat_opt`: the forward pass of a `custom_vjp` function, which DCE replaces by the function without residuals.

remat_opt : a -> (b, res)        given programs a -> (b, res) and a -> b
"""

from __future__ import annotations

from typing import Any

from corejax.extend import ClosedJaxpr, JaxprEqn, Primitive, batch_jaxpr, defcall, inlining, vmap_rules
from corejax.extend.programs import dce_rules
from corejax_control_flow.custom.open_calls import PLAIN_RULES

remat_opt_p = Primitive(
    "remat_opt",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=inlining("fwd_jaxpr"),
    doc="Call a forward pass, or the function itself if no residual is used. Params: fun_jaxpr, fwd_jaxpr, "
    "name, num_res.",
)


# The jvp is that of the forward pass, as derivatives of the call use residuals.
defcall(remat_opt_p, "fwd_jaxpr", inline=True, rules=(*PLAIN_RULES, "jvp"))


@vmap_rules.register(remat_opt_p)
def remat_opt_vmap(
    axis_size: int, vals: Any, dims: Any, *, fun_jaxpr: ClosedJaxpr, fwd_jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    """Batch both programs."""
    fwd, dims_out = batch_jaxpr(fwd_jaxpr, axis_size, dims, True)
    fun, _ = batch_jaxpr(fun_jaxpr, axis_size, dims, True)
    return remat_opt_p.bind(*vals, fun_jaxpr=fun, fwd_jaxpr=fwd, **params), dims_out


def remat_opt_dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Call the function instead of the forward pass if no residual is used."""
    num_res = eqn.params["num_res"]
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    if num_res and not any(used_outputs[len(used_outputs) - num_res :]):
        fun = eqn.params["fun_jaxpr"]
        outvars = eqn.outvars[: len(eqn.outvars) - num_res]
        eqn = eqn.replace(outvars=outvars, params={**eqn.params, "fwd_jaxpr": fun, "num_res": 0})
    return [True] * len(eqn.invars), eqn


dce_rules[remat_opt_p] = remat_opt_dce
