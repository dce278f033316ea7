"""`remat2`: a program whose inner values are not kept for the backward pass but computed again.

    remat2 : a -> b        given a program a -> b

Where nothing is differentiated it is the program itself. Partial evaluation splits the program in two. The known half
keeps its arguments and the values that the policy allows. The unknown half computes the rest again from those; its
equation has `differentiated=True`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    PartialEvalTrace,
    Policy,
    Primitive,
    ShapedArray,
    Var,
    abstract_eval_rules,
    batch_jaxpr,
    dce_jaxpr,
    dce_rules,
    defrecompute,
    eval_jaxpr_on_host,
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
from corejax_control_flow.checkpoint.policies import nothing_saveable
from corejax_control_flow.programs.rewriting import chosen, inlining, merged, others

remat_p = Primitive(
    "remat2",
    multiple_results=True,
    tags=("higher_order",),
    decomposition=inlining("jaxpr"),
    doc=(
        "A program whose inner values are computed again in the backward pass. Params: jaxpr, policy (None: nothing "
        "inside is saved), prevent_cse, differentiated."
    ),
)


@impl_rules.register(remat_p)
def remat_impl(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """The program on NumPy arrays."""
    return eval_jaxpr_on_host(jaxpr, args)


@abstract_eval_rules.register(remat_p)
def remat_abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr, **params: Any) -> list[ShapedArray]:
    """The program's own type; operands may differ from it in weak type only."""
    expected = jaxpr.in_avals
    if len(avals) != len(expected):
        raise TypeError(f"remat2: a program of {len(expected)} arguments was given {len(avals)} operands")
    for i, (got, want) in enumerate(zip(avals, expected, strict=True)):
        if got is not want and (got.shape != want.shape or got.dtype != want.dtype):
            raise TypeError(f"remat2: operand {i} is {got.str_short()}, the program takes {want.str_short()}")
    return jaxpr.out_avals


@jvp_rules.register(remat_p, symbolic_zeros=True)
def remat_jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    """One application of the program that pushes tangents forward."""
    pushed, nonzeros_out = jvp_jaxpr(jaxpr, [t is not None for t in tangents])
    outs = remat_p.bind(*primals, *(t for t in tangents if t is not None), jaxpr=pushed, **params)
    count = len(nonzeros_out)
    return outs[:count], merged(nonzeros_out, outs[count:], [None] * nonzeros_out.count(False))


@vmap_rules.register(remat_p)
def remat_vmap(axis_size: int, vals: Any, dims: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    """One application of the batched program."""
    batched, dims_out = batch_jaxpr(jaxpr, axis_size, dims)
    return remat_p.bind(*vals, jaxpr=batched, **params), dims_out


def _halves(
    unknowns: Sequence[bool], params: dict[str, Any]
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], dict[str, Any]]:
    """The known half, the unknown half, which outputs are unknown, and the unknown half's params."""
    policy: Policy = params["policy"] or nothing_saveable
    known, unknown, unknowns_out, num_res = partial_eval_jaxpr(params["jaxpr"], unknowns, policy=policy)
    # Without anything to compute again, there is nothing that the compiler could undo.
    fence = params["prevent_cse"] and _recomputes(unknown, num_res)
    return known, unknown, unknowns_out, {**params, "differentiated": True, "jaxpr": unknown, "prevent_cse": fence}


def _recomputes(unknown: ClosedJaxpr, num_res: int) -> bool:
    """Whether some equation of an unknown half depends on residuals only."""
    linear: set[Any] = set(unknown.jaxpr.invars[num_res:])
    for eqn in unknown.jaxpr.eqns:
        if linear.isdisjoint(eqn.invars):
            return True
        linear.update(eqn.outvars)
    return False


def _runs(jaxpr: ClosedJaxpr) -> bool:
    return bool(jaxpr.out_avals) or bool(jaxpr.effects)


@partial_eval_rules.register(remat_p)
def remat_partial_eval(trace: PartialEvalTrace, args: Sequence[Any], **params: Any) -> list[Any]:
    """Run the known half now, in place; record the unknown half with what the policy lets it have."""
    unknowns = [trace.is_unknown(x) for x in args]
    known, unknown, unknowns_out, later = _halves(unknowns, params)
    known_args = others(args, unknowns)
    computing, plan = without_forwarded(known)
    computed = inline_closed(computing, known_args) if _runs(computing) else []
    outs = [known_args[i] if forwarded else computed[i] for forwarded, i in plan]
    num_known = unknowns_out.count(False)
    recorded: list[Any] = []
    if _runs(unknown):
        recorded = trace.record(remat_p, [*outs[num_known:], *chosen(args, unknowns)], later)
    return merged(unknowns_out, recorded, outs[:num_known])


@partial_eval_jaxpr_rules.register(remat_p)
def remat_partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split one equation into one for each half; an operand that is a residual is used as it is."""
    params = eqn.params
    known, unknown, unknowns_out, later = _halves(unknowns, params)
    known_in, known_out = others(eqn.invars, unknowns), others(eqn.outvars, unknowns_out)
    plain = known.jaxpr.outvars[: len(known_out)]
    sources = dict(zip(known.jaxpr.invars, known_in, strict=True))
    sources.update((v, w) for v, w in zip(plain, known_out, strict=True) if type(v) is Var and v not in sources)
    flags = [True] * len(plain)
    extra = []
    for v in known.jaxpr.outvars[len(plain) :]:
        flags.append(v not in sources)
        if v not in sources:
            extra.append(sources.setdefault(v, Var(v.aval)))
    residuals = [sources[v] for v in known.jaxpr.outvars[len(plain) :]]
    smaller, _ = dce_jaxpr(known, flags, True)
    known_eqn = eqn.replace(invars=known_in, outvars=[*known_out, *extra], params={**params, "jaxpr": smaller})
    unknown_eqn = eqn.replace(
        invars=[*residuals, *chosen(eqn.invars, unknowns)],
        outvars=chosen(eqn.outvars, unknowns_out),
        params=later,
    )
    return (
        known_eqn if _runs(smaller) else None,
        unknown_eqn if _runs(unknown) else None,
        unknowns_out,
        residuals,
    )


@transpose_rules.register(remat_p, symbolic_zeros=True)
def remat_transpose(cts: Sequence[Any], *operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    """One application of the transposed program, which first computes again what it needs."""
    linear = [is_undef_primal(x) for x in operands]
    transposed, nonzeros = transpose_jaxpr(jaxpr, linear, [ct is not None for ct in cts])
    if not transposed.out_avals:
        return [None] * len(operands)
    real = [ct for ct in cts if ct is not None]
    outs = remat_p.bind(*others(operands, linear), *real, jaxpr=transposed, **params)
    cts_in = merged(nonzeros, outs, [None] * nonzeros.count(False))
    return merged(linear, cts_in, [None] * linear.count(False))


def remat_dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Drop outputs that are not used, and operands that are then not needed."""
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    smaller, used = dce_jaxpr(eqn.params["jaxpr"], used_outputs)
    return used, eqn.replace(
        invars=chosen(eqn.invars, used),
        outvars=chosen(eqn.outvars, used_outputs),
        params={**eqn.params, "jaxpr": smaller},
    )


dce_rules[remat_p] = remat_dce
defrecompute(remat_p, "jaxpr")

__all__ = ["remat_p"]
