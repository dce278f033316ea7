"""The primitive behind `cond` and `switch`, which runs one of several programs, chosen by an index.

    cond : i32[] -> a -> b        given branches, each a -> b

The index counts from 0. The public functions clamp it, so that it is in range. Operands and outputs of the branches
agree in shape and dtype. An output is weakly typed if it is weakly typed in every branch. Partial evaluation is in
`cond_partial_eval`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    Tracer,
    abstract_eval_rules,
    batch_jaxpr,
    dce_jaxpr,
    dtypes,
    eval_jaxpr_on_host,
    get_aval,
    impl_rules,
    inline_closed,
    is_undef_primal,
    jvp_jaxpr,
    jvp_rules,
    move_batch_axis,
    partition_list,
    spread_list,
    transpose_jaxpr,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.programs import dce_rules, select_list
from corejax.extend.transforms import for_each_element, tangent_aval
from corejax.extend.types import join_refinements
from corejax_control_flow.branches.if_taken import if_taken_p
from corejax_control_flow.programs.messages import shown_types
from corejax_control_flow.programs.rewriting import either, has_only_debug_effects, refuse_effects, with_outputs
from corejax_control_flow.programs.weak_types import same_but_weak_type

Branches = tuple[ClosedJaxpr, ...]
Linear = tuple[bool, ...]

cond_p = Primitive(
    "cond",
    multiple_results=True,
    tags=("higher_order",),
    doc="Run the branch that the first operand selects. Params: branches, linear (flags of the operands).",
)


@impl_rules.register(cond_p)
def cond_impl(index: Any, *operands: Any, branches: Branches, linear: Linear) -> list[Any]:
    """Run the chosen branch on NumPy arrays."""
    return eval_jaxpr_on_host(branches[min(max(int(index), 0), len(branches) - 1)], operands)


@abstract_eval_rules.register(cond_p)
def cond_abstract_eval(index: ShapedArray, *operands: ShapedArray, branches: Branches, linear: Linear) -> Any:
    """Check the branches against the operands and return their common output types."""
    if index.shape != () or index.dtype != np.int32:
        raise TypeError(f"cond: the index must be int32[], got {index.str_short(short_dtypes=False)}")
    if not branches:
        raise TypeError("cond needs at least one branch")
    if len(linear) != len(operands):
        raise TypeError(f"cond: `linear` has {len(linear)} flags for {len(operands)} operands")
    for i, branch in enumerate(branches):
        if not _agree(branch.in_avals, operands):
            raise TypeError(
                f"cond: branch {i} takes operands of types {shown_types(branch.in_avals)}, got {shown_types(operands)}"
            )
        if not _agree(branch.out_avals, branches[0].out_avals):
            raise TypeError(
                f"cond: branch 0 returns results of types {shown_types(branches[0].out_avals)}, branch {i} of types "
                f"{shown_types(branch.out_avals)}"
            )
    return joined_out_avals(branches)


def _agree(avals: Sequence[ShapedArray], expected: Sequence[ShapedArray]) -> bool:
    return len(avals) == len(expected) and all(map(same_but_weak_type, avals, expected))


def joined_out_avals(branches: Branches) -> list[ShapedArray]:
    """Return the types of the results: weak if weak in all branches, varying along the axes of any branch."""
    avals_out = []
    for column in zip(*(b.out_avals for b in branches), strict=True):
        aval = column[0] if all(a.weak_type for a in column) else column[0].strip_weak_type()
        avals_out.append(aval.refined(functools.reduce(join_refinements, (a.refinement for a in column))))
    return avals_out


@jvp_rules.register(cond_p, symbolic_zeros=True)
def cond_jvp(primals: Any, tangents: Any, *, branches: Branches, linear: Linear) -> Any:
    """Bind one conditional between the branches' jvps."""
    index, *operands = primals
    nonzeros = [t is not None for t in tangents[1:]]
    nonzeros_out = either(*(jvp_jaxpr(b, nonzeros)[1] for b in branches))
    jvps = tuple(jvp_jaxpr(b, nonzeros, nonzeros_out)[0] for b in branches)
    tangents_in = [t for t in tangents[1:] if t is not None]
    outs = cond_p.bind(index, *operands, *tangents_in, branches=jvps, linear=(*linear, *(True for _ in tangents_in)))
    count = len(nonzeros_out)
    return outs[:count], spread_list(nonzeros_out, outs[count:])


@vmap_rules.register(cond_p)
def cond_vmap(axis_size: int, vals: Any, dims: Any, *, branches: Branches, linear: Linear) -> Any:
    """Batch the branches; with a batched index run all of them and select.

    Branches with debugging callbacks and no other effects run element by element instead, so that a callback runs
    only for the elements that take its branch.
    """
    index, *operands = vals
    index_dim, *dims_in = dims
    if index_dim is not None and has_only_debug_effects(branches):
        bind = functools.partial(cond_p.bind, branches=branches, linear=linear)
        outs = for_each_element(bind, axis_size, vals, dims)
        return outs, [0] * len(outs)
    if index_dim is not None:
        return _select_outputs(axis_size, index, index_dim, operands, dims_in, branches)
    batched = either(*([d is not None for d in batch_jaxpr(b, axis_size, dims_in)[1]] for b in branches))
    new = tuple(batch_jaxpr(b, axis_size, dims_in, batched)[0] for b in branches)
    outs = cond_p.bind(index, *operands, branches=new, linear=linear)
    return outs, [0 if b else None for b in batched]


def _select_outputs(axis_size: int, index: Any, index_dim: int, operands: Any, dims_in: Any, branches: Branches) -> Any:
    """Run every branch, then select for each element. An output that is one operand in all branches is forwarded."""
    from corejax_lax_basic import lax

    refuse_effects(
        branches,
        "vmap of cond over a mapped predicate runs every branch, but a branch has effects ({}) that would then happen "
        "for every element. Map over the operands only, or move the effect out of the cond.",
    )
    index = move_batch_axis(axis_size, index_dim, 0, index)
    operands, dims_in, guarded = _in_front_of_guards(axis_size, operands, dims_in)
    programs = [batch_jaxpr(b, axis_size, dims_in) for b in branches]
    results = [
        inline_closed(p, _guarded(operands, guarded, branch, index, i))
        for i, ((p, _), branch) in enumerate(zip(programs, branches, strict=True))
    ]
    vals_out = []
    dims_out: list[int | None] = []
    for i, column in enumerate(zip(*results, strict=True)):
        dims = [dims_out[i] for _, dims_out in programs]
        same = _same_operand([p.jaxpr for p, _ in programs], i)
        if same is not None:
            vals_out.append(operands[same])
            dims_out.append(dims_in[same])
            continue
        cases = list(column)
        if any(d is not None or get_aval(x).ndim for x, d in zip(column, dims, strict=True)):
            cases = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(column, dims, strict=True)]
        vals_out.append(lax.choose(index, *cases))  # broadcasts scalars, if all cases are unbatched ones
        dims_out.append(0)
    return vals_out, dims_out


def _same_operand(programs: Sequence[Jaxpr], i: int) -> int | None:
    """Return the index of the operand that output `i` forwards in all programs, or None."""
    sources = {p.invars.index(v) if (v := p.outvars[i]) in p.invars else None for p in programs}
    return sources.pop() if len(sources) == 1 else None


def _in_front_of_guards(axis_size: int, operands: Any, dims_in: Any) -> tuple[list[Any], list[Any], list[bool]]:
    """Return the operands, their batch dims, and flags of the operands to guard by `if_taken`.

    An operand that may be differentiated later is guarded, and batched if it is not yet. An unbatched array that is no
    scalar stays unbatched and without guard, so that a product with it stays one matrix product for the whole batch.
    """
    guarded = [
        isinstance(x, Tracer) and dtypes.is_inexact(get_aval(x).dtype) and (d is not None or not get_aval(x).ndim)
        for x, d in zip(operands, dims_in, strict=True)
    ]
    rows = list(zip(operands, dims_in, guarded, strict=True))
    moved = [move_batch_axis(axis_size, d, 0, x) if guard else x for x, d, guard in rows]
    return moved, [0 if guard else d for _, d, guard in rows], guarded


def _guarded(operands: list[Any], guarded: list[bool], branch: ClosedJaxpr, index: Any, i: int) -> list[Any]:
    """Return the operands of branch `i`, with guards on those that the branch computes with."""
    from corejax_lax_basic import lax

    used = {v for eqn in branch.jaxpr.eqns for v in eqn.invars}
    guards = [guard and v in used for v, guard in zip(branch.jaxpr.invars, guarded, strict=True)]
    if not any(guards):
        return operands
    taken = lax.eq(index, np.int32(i))
    return [if_taken_p.bind(x, taken) if guard else x for x, guard in zip(operands, guards, strict=True)]


# -- transposition and dead code -----------------------------------------------------------------------------


@transpose_rules.register(cond_p, symbolic_zeros=True)
def cond_transpose(cts: Sequence[Any], index: Any, *operands: Any, branches: Branches, linear: Linear) -> list[Any]:
    """Bind one conditional between the transposed branches. A branch without a cotangent returns zeros."""
    undef = [is_undef_primal(x) for x in operands]
    avals = [tangent_aval(x.aval) for x in select_list(undef, operands)]
    transposed = [transpose_jaxpr(b, undef, [ct is not None for ct in cts]) for b in branches]
    nonzeros = either(*(nonzero for _, nonzero in transposed))
    if not any(nonzeros):
        return [None] * (1 + len(operands))
    programs = []
    for program, nonzero in transposed:
        numbers = iter(range(len(program.out_avals)))
        plan: list[Any] = [next(numbers) if flag else aval for flag, aval in zip(nonzero, avals, strict=True)]
        programs.append(with_outputs(program, select_list(nonzeros, plan)))
    residuals = partition_list(undef, operands)[0]
    cts_out = [ct for ct in cts if ct is not None]
    flags = (*(False for _ in residuals), *(True for _ in cts_out))
    outs = cond_p.bind(index, *residuals, *cts_out, branches=tuple(programs), linear=flags)
    cts_in = spread_list(nonzeros, outs)
    return [None, *spread_list(undef, cts_in)]


def cond_dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Drop outputs that are not used, and operands that no branch then uses."""
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    branches = eqn.params["branches"]
    used = either(*(dce_jaxpr(b, used_outputs)[1] for b in branches))
    smaller = tuple(dce_jaxpr(b, used_outputs, used)[0] for b in branches)
    params = {"branches": smaller, "linear": tuple(select_list(used, eqn.params["linear"]))}
    invars = [eqn.invars[0], *select_list(used, eqn.invars[1:])]
    return [True, *used], eqn.replace(invars=invars, outvars=select_list(used_outputs, eqn.outvars), params=params)


dce_rules[cond_p] = cond_dce
