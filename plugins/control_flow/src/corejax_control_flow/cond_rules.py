"""`cond`, the primitive behind `cond` and `switch`: one of several programs, chosen by an index.

    cond : i32[] -> a -> b        given branches, each a -> b

The index counts from 0 and is in range: the public functions clamp it. Operands and outputs of the branches
agree in shape and dtype; an output is weakly typed where it is in every branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    PartialEvalTrace,
    Primitive,
    ShapedArray,
    Var,
    abstract_eval_rules,
    batch_jaxpr,
    dce_jaxpr,
    dce_rules,
    eval_jaxpr_on_host,
    get_aval,
    impl_rules,
    inline_closed,
    is_undef_primal,
    jvp_jaxpr,
    jvp_rules,
    memoised,
    merge_lists,
    move_batch_axis,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    partition_list,
    select_list,
    spread_list,
    tangent_aval,
    transpose_jaxpr,
    transpose_rules,
    vmap_rules,
)
from corejax_control_flow.programs import either, refuse_effects, with_outputs

Branches = tuple[ClosedJaxpr, ...]
Linear = tuple[bool, ...]

cond_p = Primitive(
    "cond",
    multiple_results=True,
    tags=("higher_order",),
    doc="Run the branch that the first operand names. Params: branches, linear (flags of the operands).",
)


@impl_rules.register(cond_p)
def cond_impl(index: Any, *operands: Any, branches: Branches, linear: Linear) -> list[Any]:
    """Only the chosen branch runs, on NumPy arrays."""
    return eval_jaxpr_on_host(branches[min(max(int(index), 0), len(branches) - 1)], operands)


@abstract_eval_rules.register(cond_p)
def cond_abstract_eval(index: ShapedArray, *operands: ShapedArray, branches: Branches, linear: Linear) -> Any:
    """The branches' common type."""
    if index.shape != () or index.dtype != np.int32:
        raise TypeError(f"cond: the index is int32[], got {index.str_short(short_dtypes=False)}")
    if not branches:
        raise TypeError("cond needs at least one branch")
    if len(linear) != len(operands):
        raise TypeError(f"cond: `linear` has {len(linear)} flags for {len(operands)} operands")
    for i, branch in enumerate(branches):
        if not _agree(branch.in_avals, operands):
            raise TypeError(
                f"cond: branch {i} takes operands of types {_types(branch.in_avals)}, got {_types(operands)}"
            )
        if not _agree(branch.out_avals, branches[0].out_avals):
            raise TypeError(
                f"cond: branch 0 gives results of types {_types(branches[0].out_avals)}, branch {i} of types "
                f"{_types(branch.out_avals)}"
            )
    return joined_out_avals(branches)


def _agree(avals: Sequence[ShapedArray], expected: Sequence[ShapedArray]) -> bool:
    return len(avals) == len(expected) and all(
        a is b or (a.shape == b.shape and a.dtype == b.dtype) for a, b in zip(avals, expected, strict=True)
    )


def _types(avals: Sequence[ShapedArray]) -> str:
    return f"({', '.join(a.str_short() for a in avals)})"


def joined_out_avals(branches: Branches) -> list[ShapedArray]:
    """Types of the results: weak where all branches' are."""
    columns = zip(*(b.out_avals for b in branches), strict=True)
    return [column[0] if all(a.weak_type for a in column) else column[0].strip_weak_type() for column in columns]


@jvp_rules.register(cond_p, symbolic_zeros=True)
def cond_jvp(primals: Any, tangents: Any, *, branches: Branches, linear: Linear) -> Any:
    """One conditional between the programs that push tangents forward."""
    index, *operands = primals
    nonzeros = [t is not None for t in tangents[1:]]
    nonzeros_out = either(*(jvp_jaxpr(b, nonzeros)[1] for b in branches))
    pushed = tuple(jvp_jaxpr(b, nonzeros, nonzeros_out)[0] for b in branches)
    real = [t for t in tangents[1:] if t is not None]
    outs = cond_p.bind(index, *operands, *real, branches=pushed, linear=(*linear, *(True for _ in real)))
    count = len(nonzeros_out)
    return outs[:count], spread_list(nonzeros_out, outs[count:])


@vmap_rules.register(cond_p)
def cond_vmap(axis_size: int, vals: Any, dims: Any, *, branches: Branches, linear: Linear) -> Any:
    """A conditional between the batched branches; only a batched index needs them all."""
    index, *operands = vals
    index_dim, *dims_in = dims
    if index_dim is not None:
        return _select_outputs(axis_size, index, operands, dims_in, branches)
    batched = either(*([d is not None for d in batch_jaxpr(b, axis_size, dims_in)[1]] for b in branches))
    new = tuple(batch_jaxpr(b, axis_size, dims_in, batched)[0] for b in branches)
    outs = cond_p.bind(index, *operands, branches=new, linear=linear)
    return outs, [0 if b else None for b in batched]


def _select_outputs(axis_size: int, index: Any, operands: Any, dims_in: Any, branches: Branches) -> Any:
    """Elements of the batch go different ways: run every branch, then choose, unless the branches agree."""
    from corejax_lax_basic import lax

    refuse_effects(
        branches,
        "vmap of cond over a mapped predicate runs every branch, but a branch has effects ({}) that would then happen "
        "for every element. Map over the operands only, or move the effect out of the cond.",
    )
    programs = [batch_jaxpr(b, axis_size, dims_in) for b in branches]
    results = [inline_closed(p, operands) for p, _ in programs]
    vals_out = []
    dims_out: list[int | None] = []
    for i, column in enumerate(zip(*results, strict=True)):
        dims = [dims_out[i] for _, dims_out in programs]
        if _same_operand([p.jaxpr for p, _ in programs], i):
            vals_out.append(column[0])
            dims_out.append(dims[0])
            continue
        cases = list(column)
        if any(d is not None or get_aval(x).ndim for x, d in zip(column, dims, strict=True)):
            cases = [move_batch_axis(axis_size, d, 0, x) for x, d in zip(column, dims, strict=True)]
        shape = get_aval(cases[0]).shape  # of a batch; () where all are scalars, which select_n mixes with indices
        which = lax.broadcast_in_dim(index, shape, (0,)) if len(shape) > 1 else index
        vals_out.append(lax.select_n(which, *cases))
        dims_out.append(0)
    return vals_out, dims_out


def _same_operand(programs: Sequence[Jaxpr], i: int) -> bool:
    """Whether output `i` is the same operand in all programs."""
    sources = {p.invars.index(v) if (v := p.outvars[i]) in p.invars else None for p in programs}
    return len(sources) == 1 and sources != {None}


# -- partial evaluation --------------------------------------------------------------------------------------


class _Halves(NamedTuple):
    """Branches unzipped together.

    Attributes:
        known: branches `known operands -> (known outputs, slots)`.
        unknown: branches `(slots, forwarded operands, unknown operands) -> unknown outputs`.
        unknowns_out: which outputs are unknown.
        forwarded: which known operands the unknown branches take as they are.
        slots: number of values that the known branches leave for the unknown ones.
    """

    known: Branches
    unknown: Branches
    unknowns_out: list[bool]
    forwarded: list[int]
    slots: int


def _unzip(branches: Branches, unknowns: Sequence[bool]) -> _Halves:
    """Split every branch; residuals of one type share a slot, so that all branches leave the same types."""

    def make() -> _Halves:
        none = [False] * len(branches[0].out_avals)
        unknowns_out = either(none, *(partial_eval_jaxpr(b, unknowns, none)[2] for b in branches))
        halves = [partial_eval_jaxpr(b, unknowns, unknowns_out) for b in branches]
        num_known = unknowns_out.count(False)
        forwarded: dict[int, None] = {}
        slots: list[ShapedArray] = []
        sources = []  # for each branch and residual: ("operand", its index) or ("slot", its index)
        for known, *_ in halves:
            sources.append(_residual_sources(known.jaxpr, num_known, forwarded, slots))
        order = sorted(forwarded)
        pairs = zip(halves, sources, strict=True)
        made = [_joined_halves(k, u, num_known, source, order, slots) for (k, u, *_), source in pairs]
        return _Halves(tuple(k for k, _ in made), tuple(u for _, u in made), unknowns_out, order, len(slots))

    return memoised(branches[0], ("cond halves", branches, tuple(unknowns)), make)  # type: ignore[no-any-return]


def _residual_sources(known: Jaxpr, num_known: int, forwarded: dict[int, None], slots: list[Any]) -> list[Any]:
    position = {v: i for i, v in enumerate(known.invars)}
    free = list(enumerate(slots))
    sources: list[Any] = []
    for v in known.outvars[num_known:]:
        if v in position:
            forwarded[position[v]] = None
            sources.append(("operand", position[v]))
            continue
        aval = v.aval.strip_weak_type()
        slot = next((i for i, a in free if a is aval), None)
        if slot is None:
            slot = len(slots)
            slots.append(aval)
        else:
            free.remove((slot, aval))
        sources.append(("slot", slot))
    return sources


def _joined_halves(
    known: ClosedJaxpr,
    unknown: ClosedJaxpr,
    num_known: int,
    sources: list[Any],
    forwarded: list[int],
    slots: list[Any],
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """One branch's halves with the slots and forwarded operands of all branches."""
    num_res = len(sources)
    filled = {s: num_known + i for i, s in enumerate(sources)}
    plan = [*range(num_known), *(filled.get(("slot", i), aval) for i, aval in enumerate(slots))]
    old = unknown.jaxpr
    binder = dict(zip(sources, old.invars[:num_res], strict=True))
    taken = [binder.get(("slot", i)) or Var(aval) for i, aval in enumerate(slots)]
    passed = [binder.get(("operand", i)) or Var(known.in_avals[i]) for i in forwarded]
    invars = [*taken, *passed, *old.invars[num_res:]]
    joined = Jaxpr(old.constvars, invars, old.eqns, old.outvars, old.debug_info)
    return with_outputs(known, plan), ClosedJaxpr(joined, unknown.consts)


def _runs(branches: Branches) -> bool:
    return bool(branches[0].out_avals) or any(b.effects for b in branches)


@partial_eval_rules.register(cond_p)
def cond_partial_eval(trace: PartialEvalTrace, args: Sequence[Any], *, branches: Branches, linear: Linear) -> list[Any]:
    """With a known index the known halves run now; with an unknown one nothing does."""
    index, *operands = args
    if trace.is_unknown(index):
        return trace.record(cond_p, args, {"branches": branches, "linear": linear})
    unknowns = [trace.is_unknown(x) for x in operands]
    halves = _unzip(branches, unknowns)
    known, later = partition_list(unknowns, operands)
    linear_known, linear_later = partition_list(unknowns, linear)
    outs: list[Any] = []
    if _runs(halves.known):
        outs = cond_p.bind(index, *known, branches=halves.known, linear=tuple(linear_known))
    num_known = len(outs) - halves.slots
    residuals = [*outs[num_known:], *(known[i] for i in halves.forwarded)]
    flags = (*(False for _ in residuals), *linear_later)
    recorded: list[Any] = []
    if _runs(halves.unknown):
        params = {"branches": halves.unknown, "linear": flags}
        recorded = trace.record(cond_p, [index, *residuals, *later], params)
    return merge_lists(halves.unknowns_out, outs[:num_known], recorded)


@partial_eval_jaxpr_rules.register(cond_p)
def cond_partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split one equation into a conditional between the known halves and one between the unknown halves."""
    if unknowns[0]:
        return None, eqn, [True] * len(eqn.outvars), []
    index, *operands = eqn.invars
    branches, linear = eqn.params["branches"], eqn.params["linear"]
    halves = _unzip(branches, unknowns[1:])
    known, later = partition_list(unknowns[1:], operands)
    linear_known, linear_later = partition_list(unknowns[1:], linear)
    known_out, unknown_out = partition_list(halves.unknowns_out, eqn.outvars)
    slots = [Var(a) for a in joined_out_avals(halves.known)[len(known_out) :]]
    residuals = [*slots, *(known[i] for i in halves.forwarded)]
    known_eqn = eqn.replace(
        invars=[index, *known],
        outvars=[*known_out, *slots],
        params={"branches": halves.known, "linear": tuple(linear_known)},
    )
    unknown_eqn = eqn.replace(
        invars=[index, *residuals, *later],
        outvars=unknown_out,
        params={
            "branches": halves.unknown,
            "linear": (*(False for _ in residuals), *linear_later),
        },
    )
    return (
        known_eqn if _runs(halves.known) else None,
        unknown_eqn if _runs(halves.unknown) else None,
        halves.unknowns_out,
        residuals,
    )


# -- transposition and dead code -----------------------------------------------------------------------------


@transpose_rules.register(cond_p, symbolic_zeros=True)
def cond_transpose(cts: Sequence[Any], index: Any, *operands: Any, branches: Branches, linear: Linear) -> list[Any]:
    """One conditional between the transposed branches; a branch without some cotangent gives zeros."""
    undef = [is_undef_primal(x) for x in operands]
    avals = [tangent_aval(x.aval) for x in select_list(undef, operands)]
    pulled = [transpose_jaxpr(b, undef, [ct is not None for ct in cts]) for b in branches]
    nonzeros = either(*(own for _, own in pulled))
    if not any(nonzeros):
        return [None] * (1 + len(operands))
    programs = []
    for program, own in pulled:
        numbers = iter(range(len(program.out_avals)))
        places: list[Any] = [next(numbers) if mine else aval for mine, aval in zip(own, avals, strict=True)]
        programs.append(with_outputs(program, select_list(nonzeros, places)))
    residuals = partition_list(undef, operands)[0]
    real = [ct for ct in cts if ct is not None]
    flags = (*(False for _ in residuals), *(True for _ in real))
    outs = cond_p.bind(index, *residuals, *real, branches=tuple(programs), linear=flags)
    cts_in = spread_list(nonzeros, outs)
    return [None, *spread_list(undef, cts_in)]


def cond_dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Drop outputs that nobody uses, and operands that no branch then uses."""
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    branches = eqn.params["branches"]
    used = either(*(dce_jaxpr(b, used_outputs)[1] for b in branches))
    smaller = tuple(dce_jaxpr(b, used_outputs, used)[0] for b in branches)
    params = {"branches": smaller, "linear": tuple(select_list(used, eqn.params["linear"]))}
    invars = [eqn.invars[0], *select_list(used, eqn.invars[1:])]
    return [True, *used], eqn.replace(invars=invars, outvars=select_list(used_outputs, eqn.outvars), params=params)


dce_rules[cond_p] = cond_dce

__all__ = ["cond_p", "joined_out_avals"]
