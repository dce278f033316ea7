"""`xla_call`, the higher-order primitive behind `jit`: a program compiled as one, with all of its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    Array,
    ClosedJaxpr,
    JaxprEqn,
    PartialEvalTrace,
    Primitive,
    ShapedArray,
    Var,
    abstract_eval_rules,
    batch_jaxpr,
    dce_jaxpr,
    dce_rules,
    defrecompute,
    impl_rules,
    inline_closed,
    is_undef_primal,
    jvp_jaxpr,
    jvp_rules,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    transpose_jaxpr,
    transpose_rules,
    vmap_rules,
    without_forwarded,
)


def _inlined(*operands: Any, call_jaxpr: ClosedJaxpr, name: str, backend: str | None) -> list[Any]:
    """The program's equations, bound one by one: what a rule kind that knows nothing of `jit` gets."""
    return inline_closed(call_jaxpr, operands)


xla_call_p = Primitive(
    "xla_call",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=_inlined,
    doc="Call a program that is compiled as one: what `jit` stages. Params: call_jaxpr, name, backend.",
)


@impl_rules.register(xla_call_p, device=True)
def xla_call_impl(*args: Array, call_jaxpr: ClosedJaxpr, name: str, backend: str | None) -> list[Array]:
    """Compile (once for each program) and run."""
    from corejax_xla_backend._programs import execute

    return execute(call_jaxpr, args, name, backend)


@abstract_eval_rules.register(xla_call_p)
def xla_call_abstract_eval(
    *avals: ShapedArray, call_jaxpr: ClosedJaxpr, name: str, backend: str | None
) -> list[ShapedArray]:
    """The program's own type; operands may differ from it in weak type only."""
    expected = call_jaxpr.in_avals
    if len(avals) != len(expected):
        raise TypeError(f"xla_call of {name!r} takes {len(expected)} operands, got {len(avals)}")
    for i, (got, want) in enumerate(zip(avals, expected, strict=True)):
        if got.shape != want.shape or got.dtype != want.dtype:
            raise TypeError(
                f"xla_call of {name!r}: operand {i} has type {got.str_short()}, the program takes {want.str_short()}"
            )
    return call_jaxpr.out_avals


@jvp_rules.register(xla_call_p, symbolic_zeros=True)
def xla_call_jvp(primals: Any, tangents: Any, *, call_jaxpr: ClosedJaxpr, name: str, backend: str | None) -> Any:
    """One call of the program that pushes tangents forward."""
    nonzeros = [t is not None for t in tangents]
    jvp, nonzeros_out = jvp_jaxpr(call_jaxpr, nonzeros)
    real = [t for t in tangents if t is not None]
    outs = xla_call_p.bind(*primals, *real, call_jaxpr=jvp, name=f"jvp({name})", backend=backend)
    count = len(nonzeros_out)
    rest = iter(outs[count:])
    return outs[:count], [next(rest) if nz else None for nz in nonzeros_out]


@vmap_rules.register(xla_call_p)
def xla_call_vmap(
    axis_size: int, vals: Any, dims: Any, *, call_jaxpr: ClosedJaxpr, name: str, backend: str | None
) -> Any:
    """One call of the batched program."""
    batched, dims_out = batch_jaxpr(call_jaxpr, axis_size, dims)
    return xla_call_p.bind(*vals, call_jaxpr=batched, name=f"vmap({name})", backend=backend), dims_out


@partial_eval_rules.register(xla_call_p)
def xla_call_partial_eval(
    trace: PartialEvalTrace, args: Sequence[Any], *, call_jaxpr: ClosedJaxpr, name: str, backend: str | None
) -> list[Any]:
    """Call the known half now, record a call of the unknown half.

    Outputs of the known half that are just its inputs (weights saved for the backward pass, say) are not passed
    through the compiled program, which would copy them.
    """
    unknowns = [trace.is_unknown(x) for x in args]
    known, unknown, unknowns_out, num_res = partial_eval_jaxpr(call_jaxpr, unknowns)
    known_args = [x for x, u in zip(args, unknowns, strict=True) if not u]
    pruned, plan = without_forwarded(known)
    computed = xla_call_p.bind(*known_args, call_jaxpr=pruned, name=name, backend=backend) if pruned.out_avals else []
    outs = [known_args[i] if forwarded else computed[i] for forwarded, i in plan]
    num_known = len(outs) - num_res
    unknown_args = [x for x, u in zip(args, unknowns, strict=True) if u]
    params = {"call_jaxpr": unknown, "name": name, "backend": backend}
    recorded = iter(trace.record(xla_call_p, [*outs[num_known:], *unknown_args], params) if any(unknowns_out) else [])
    known_outs = iter(outs[:num_known])
    return [next(recorded) if u else next(known_outs) for u in unknowns_out]


@partial_eval_jaxpr_rules.register(xla_call_p)
def xla_call_partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split one equation into a call of the known half and a call of the unknown half."""
    known, unknown, unknowns_out, num_res = partial_eval_jaxpr(eqn.params["call_jaxpr"], unknowns)
    num_known = len(known.out_avals) - num_res
    residuals = [Var(a) for a in known.out_avals[num_known:]]
    known_in = [v for v, u in zip(eqn.invars, unknowns, strict=True) if not u]
    unknown_in = [v for v, u in zip(eqn.invars, unknowns, strict=True) if u]
    known_out = [v for v, u in zip(eqn.outvars, unknowns_out, strict=True) if not u]
    unknown_out = [v for v, u in zip(eqn.outvars, unknowns_out, strict=True) if u]
    known_eqn = eqn.replace(
        invars=known_in, outvars=[*known_out, *residuals], params={**eqn.params, "call_jaxpr": known}
    )
    unknown_eqn = eqn.replace(
        invars=[*residuals, *unknown_in], outvars=unknown_out, params={**eqn.params, "call_jaxpr": unknown}
    )
    return known_eqn, unknown_eqn, unknowns_out, residuals


@transpose_rules.register(xla_call_p, symbolic_zeros=True)
def xla_call_transpose(
    cts: Sequence[Any], *operands: Any, call_jaxpr: ClosedJaxpr, name: str, backend: str | None
) -> list[Any]:
    """One call of the transposed program."""
    linear = [is_undef_primal(x) for x in operands]
    transposed, nonzeros_out = transpose_jaxpr(call_jaxpr, linear, [ct is not None for ct in cts])
    residuals = [x for x, lin in zip(operands, linear, strict=True) if not lin]
    real = [ct for ct in cts if ct is not None]
    outs = iter(xla_call_p.bind(*residuals, *real, call_jaxpr=transposed, name=f"transpose({name})", backend=backend))
    cts_in = iter([next(outs) if nz else None for nz in nonzeros_out])
    return [next(cts_in) if lin else None for lin in linear]


def _dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    smaller, used_inputs = dce_jaxpr(eqn.params["call_jaxpr"], used_outputs)
    invars = [v for v, used in zip(eqn.invars, used_inputs, strict=True) if used]
    outvars = [v for v, used in zip(eqn.outvars, used_outputs, strict=True) if used]
    return used_inputs, eqn.replace(invars=invars, outvars=outvars, params={**eqn.params, "call_jaxpr": smaller})


dce_rules[xla_call_p] = _dce
defrecompute(xla_call_p, "call_jaxpr")
