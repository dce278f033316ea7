"""A higher-order primitive: a program called, with every rule made by the kernel's jaxpr transformations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    Var,
    batch_jaxpr,
    dce_jaxpr,
    dce_rules,
    eval_jaxpr_on_host,
    get_aval,
    is_undef_primal,
    jvp_jaxpr,
    jvp_rules,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    stage,
    transpose_jaxpr,
    transpose_rules,
    tree,
    vmap_rules,
)

__all__ = ["call", "closed_call_p"]


def _abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr) -> list[ShapedArray]:
    if list(avals) != jaxpr.in_avals:
        raise TypeError(f"toy.closed_call: the program takes {jaxpr.in_avals}, got {list(avals)}")
    return jaxpr.out_avals


closed_call_p = Primitive(
    "toy.closed_call",
    multiple_results=True,
    tags=("higher_order",),
    impl=lambda *arrays, jaxpr: eval_jaxpr_on_host(jaxpr, arrays),
    abstract_eval=_abstract_eval,
)


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
        jaxpr = type(jaxpr)((), [*jaxpr.constvars, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars)
        outs = closed_call_p.bind(*consts, *leaves, jaxpr=ClosedJaxpr(jaxpr))
        return tree.tree_unflatten(out_trees[0], outs)

    return called


@jvp_rules.register(closed_call_p, symbolic_zeros=True)
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr) -> Any:
    program, nonzeros_out = jvp_jaxpr(jaxpr, [t is not None for t in tangents])
    outs = closed_call_p.bind(*primals, *(t for t in tangents if t is not None), jaxpr=program)
    rest = iter(outs[len(nonzeros_out) :])
    return outs[: len(nonzeros_out)], [next(rest) if nonzero else None for nonzero in nonzeros_out]


@vmap_rules.register(closed_call_p)
def _vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[Any], *, jaxpr: ClosedJaxpr) -> Any:
    program, dims_out = batch_jaxpr(jaxpr, axis_size, dims)
    return closed_call_p.bind(*vals, jaxpr=program), dims_out


def _chosen(values: Sequence[Any], flags: Sequence[bool], wanted: bool) -> list[Any]:
    return [x for x, flag in zip(values, flags, strict=True) if flag is wanted]


@partial_eval_rules.register(closed_call_p)
def _partial_eval(trace: Any, args: Sequence[Any], *, jaxpr: ClosedJaxpr) -> list[Any]:
    unknowns = [trace.is_unknown(x) for x in args]
    known, unknown, unknowns_out, num_res = partial_eval_jaxpr(jaxpr, unknowns)
    outs = closed_call_p.bind(*_chosen(args, unknowns, False), jaxpr=known)
    residuals = outs[len(outs) - num_res :]
    recorded = iter(trace.record(closed_call_p, [*residuals, *_chosen(args, unknowns, True)], {"jaxpr": unknown}))
    known_outs = iter(outs)
    return [next(recorded) if u else next(known_outs) for u in unknowns_out]


@partial_eval_jaxpr_rules.register(closed_call_p)
def _partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    known, unknown, unknowns_out, num_res = partial_eval_jaxpr(eqn.params["jaxpr"], unknowns)
    residuals = [Var(a) for a in known.out_avals[len(known.out_avals) - num_res :]]
    first = eqn.replace(
        invars=_chosen(eqn.invars, unknowns, False),
        outvars=[*_chosen(eqn.outvars, unknowns_out, False), *residuals],
        params={"jaxpr": known},
    )
    second = eqn.replace(
        invars=[*residuals, *_chosen(eqn.invars, unknowns, True)],
        outvars=_chosen(eqn.outvars, unknowns_out, True),
        params={"jaxpr": unknown},
    )
    return first, second, unknowns_out, residuals


@transpose_rules.register(closed_call_p, symbolic_zeros=True)
def _transpose(cts: Sequence[Any], *operands: Any, jaxpr: ClosedJaxpr) -> list[Any]:
    linear = [is_undef_primal(x) for x in operands]
    program, nonzeros_out = transpose_jaxpr(jaxpr, linear, [ct is not None for ct in cts])
    values = [*_chosen(operands, linear, False), *(ct for ct in cts if ct is not None)]
    outs = iter(closed_call_p.bind(*values, jaxpr=program))
    cts_in = iter([next(outs) if nonzero else None for nonzero in nonzeros_out])
    return [next(cts_in) if lin else None for lin in linear]


def _dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    program, used_inputs = dce_jaxpr(eqn.params["jaxpr"], used_outputs)
    return used_inputs, eqn.replace(
        invars=_chosen(eqn.invars, used_inputs, True),
        outvars=_chosen(eqn.outvars, used_outputs, True),
        params={"jaxpr": program},
    )


dce_rules[closed_call_p] = _dce
