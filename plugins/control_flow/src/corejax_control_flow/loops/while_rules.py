"""The primitive `while`, which repeats a program while a condition on its carries holds.

    while : c -> d -> h -> h        given a condition (c, h) -> bool and a body (d, h) -> h

Operands are `cond_nconsts` constants c of the condition, `body_nconsts` constants d of the body, then the initial
carries h. A carry has the type of the body's argument. The types of the body's result and of the operand may differ
from it only in weak type. The rules of partial evaluation, transposition and dead code are in `while_partial_eval`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    Primitive,
    ShapedArray,
    Var,
    abstract_eval_rules,
    batch_jaxpr,
    eval_jaxpr_on_host,
    fixpoint,
    get_aval,
    impl_rules,
    inline_closed,
    instantiate,
    jvp_jaxpr,
    jvp_rules,
    memoised,
    merge_lists,
    move_batch_axis,
    partition_list,
    split_list,
    spread_list,
    stage_closed,
    vmap_rules,
)
from corejax.extend.programs import select_list
from corejax.extend.transforms import for_each_element, mapped_aval, tangent_aval
from corejax_control_flow.loops.long_whiles import eager_steps, finish_compiled
from corejax_control_flow.programs.messages import shown_types
from corejax_control_flow.programs.rewriting import has_only_debug_effects, rearranged, refuse_effects
from corejax_control_flow.programs.weak_types import same_but_weak_type

while_p = Primitive(
    "while",
    multiple_results=True,
    tags=("higher_order",),
    doc=("Repeat a program while a condition holds. Params: body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts."),
)


@impl_rules.register(while_p)
def while_impl(
    *args: Any, body_jaxpr: ClosedJaxpr, body_nconsts: int, cond_jaxpr: ClosedJaxpr, cond_nconsts: int
) -> list[Any]:
    """Run a Python loop on NumPy arrays; compile the rest of a loop that turns out to be long."""
    cond_consts, body_consts, carry = split_list(args, [cond_nconsts, body_nconsts])
    left = eager_steps(cond_jaxpr, body_jaxpr)
    while eval_jaxpr_on_host(cond_jaxpr, [*cond_consts, *carry])[0]:
        carry = eval_jaxpr_on_host(body_jaxpr, [*body_consts, *carry])
        left -= 1
        if left == 0:
            found = finish_compiled(
                while_p,
                args[: cond_nconsts + body_nconsts],
                carry,
                body_jaxpr=body_jaxpr,
                body_nconsts=body_nconsts,
                cond_jaxpr=cond_jaxpr,
                cond_nconsts=cond_nconsts,
            )
            if found is not None:
                return found
    return carry


@abstract_eval_rules.register(while_p)
def while_abstract_eval(
    *avals: ShapedArray, body_jaxpr: ClosedJaxpr, body_nconsts: int, cond_jaxpr: ClosedJaxpr, cond_nconsts: int
) -> list[ShapedArray]:
    """Check body and condition against the operands and return the types of the carries."""
    cond_consts, cond_carry = cond_jaxpr.in_avals[:cond_nconsts], cond_jaxpr.in_avals[cond_nconsts:]
    body_consts, carry = body_jaxpr.in_avals[:body_nconsts], body_jaxpr.in_avals[body_nconsts:]
    expected = [*cond_consts, *body_consts, *carry]
    if len(avals) != len(expected):
        raise TypeError(
            f"while: a condition of {cond_nconsts} constants and a body of {body_nconsts} with {len(carry)} carries "
            f"were given {len(avals)} operands"
        )
    kinds = ["a constant of the condition"] * cond_nconsts + ["a constant of the body"] * body_nconsts
    kinds += ["an initial carry"] * len(carry)
    for i, (got, want, kind) in enumerate(zip(avals, expected, kinds, strict=True)):
        if not same_but_weak_type(got, want):
            raise TypeError(f"while: operand {i}, {kind}, is {got.str_short()}, the program takes {want.str_short()}")
    for name, types in (("but it returns", body_jaxpr.out_avals), ("but the condition takes", cond_carry)):
        if len(types) != len(carry) or not all(map(same_but_weak_type, types, carry)):
            raise TypeError(f"while: the body takes carries {shown_types(carry)}, {name} {shown_types(types)}")
    if [(a.shape, a.dtype) for a in cond_jaxpr.out_avals] != [((), np.dtype(np.bool_))]:
        raise TypeError(f"while: the condition must return one bool[], got {shown_types(cond_jaxpr.out_avals)}")
    return carry


# -- carries that the body does not change ---------------------------------------------------------------------


def unchanging(
    args: Sequence[Any],
    avals: Sequence[ShapedArray],
    *,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> tuple[list[bool], list[Any], dict[str, Any]]:
    """Turn the carries that the body returns unchanged into constants.

    Args:
        args: operands of the loop, or batches of them.
        avals: types of the operands.
        body_jaxpr: the body.
        body_nconsts: number of the body's constants.
        cond_jaxpr: the condition.
        cond_nconsts: number of the condition's constants.

    Returns:
        Flags of these carries, and the operands and params of the loop without them.
    """
    cond_consts, body_consts, init = split_list(args, [cond_nconsts, body_nconsts])
    invars, outvars = body_jaxpr.jaxpr.invars[body_nconsts:], body_jaxpr.jaxpr.outvars
    types = avals[cond_nconsts + body_nconsts :]
    gone = [v is w and v.aval.refined(a.refinement) is a for v, w, a in zip(invars, outvars, types, strict=True)]
    if not any(gone):
        params = (body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts)
        return gone, list(args), dict(zip(_PARAMS, params, strict=True))
    kept, dropped = partition_list(gone, range(len(gone)))
    order = [*dropped, *kept]

    def moved(program: ClosedJaxpr, num_consts: int, outs: Sequence[int]) -> ClosedJaxpr:
        return rearranged(program, [*range(num_consts), *(num_consts + i for i in order)], outs)

    params = (
        moved(body_jaxpr, body_nconsts, kept),
        body_nconsts + sum(gone),
        moved(cond_jaxpr, cond_nconsts, [0]),
        cond_nconsts + sum(gone),
    )
    rest, same = partition_list(gone, init)
    return gone, [*cond_consts, *same, *body_consts, *same, *rest], dict(zip(_PARAMS, params, strict=True))


_PARAMS = ("body_jaxpr", "body_nconsts", "cond_jaxpr", "cond_nconsts")


# -- derivatives and batches -----------------------------------------------------------------------------------


@jvp_rules.register(while_p, symbolic_zeros=True)
def while_jvp(
    primals: Any,
    tangents: Any,
    *,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> Any:
    """Bind one loop that carries primals and tangents.

    A carry has a tangent if it gets one in any iteration, hence the fixed point.
    """
    cond_consts, body_consts, init = split_list(primals, [cond_nconsts, body_nconsts])
    _, const_dots, init_dots = split_list(tangents, [cond_nconsts, body_nconsts])
    nz_consts, nz_carry = ([t is not None for t in ts] for ts in (const_dots, init_dots))

    def push(carry: list[bool]) -> Any:
        jvp_body, nz_out = jvp_jaxpr(body_jaxpr, [*nz_consts, *carry], carry)
        return nz_out, jvp_body

    nz_carry, jvp_body = fixpoint(push, nz_carry)
    if not any(nz_carry):
        params = (body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts)
        return while_p.bind(*primals, **dict(zip(_PARAMS, params, strict=True))), [None] * len(init)
    # The body takes all primals, then all tangents; a loop takes constants, then carries.
    sizes = (body_nconsts, len(init), sum(nz_consts))
    consts, carry, dot_consts, dot_carry = split_list(range(len(jvp_body.in_avals)), sizes)
    body = rearranged(jvp_body, [*consts, *dot_consts, *carry, *dot_carry], range(len(jvp_body.out_avals)))
    avals = [tangent_aval(a) for a in select_list(nz_carry, body_jaxpr.in_avals[body_nconsts:])]
    carry_dots = [instantiate(t, x) for t, x, nz in zip(init_dots, init, nz_carry, strict=True) if nz]
    operands = [*cond_consts, *body_consts, *select_list(nz_consts, const_dots), *init, *carry_dots]
    gone, operands, new = unchanging(
        operands,
        list(map(get_aval, operands)),
        body_jaxpr=body,
        body_nconsts=body_nconsts + sum(nz_consts),
        cond_jaxpr=with_more_arguments(cond_jaxpr, avals),
        cond_nconsts=cond_nconsts,
    )
    outs = merge_lists(gone, while_p.bind(*operands, **new), select_list(gone, [*init, *carry_dots]))
    return outs[: len(init)], spread_list(nz_carry, outs[len(init) :])


def with_more_arguments(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Append unused arguments to a program."""

    def make() -> ClosedJaxpr:
        old = closed.jaxpr
        invars = [*old.invars, *map(Var, avals)]
        return ClosedJaxpr(Jaxpr(old.constvars, invars, old.eqns, old.outvars, old.debug_info), closed.consts)

    return memoised(closed, ("more arguments", tuple(avals)), make) if avals else closed


@vmap_rules.register(while_p)
def while_vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
    """Bind one loop of the batched body.

    If the condition is batched, elements end at different times and every carry is batched. A loop with debugging
    callbacks and no other effects then runs element by element instead.
    """
    num_consts = params["cond_nconsts"] + params["body_nconsts"]
    original = vals, dims, params
    vals = [x if d is None else move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True)]
    avals = [mapped_aval(get_aval(x), None if d is None else 0) for x, d in zip(vals, dims, strict=True)]
    gone, operands, params = unchanging(vals, avals, **params)
    body_nconsts, cond_nconsts = params["body_nconsts"], params["cond_nconsts"]
    init_dims = [None if d is None else 0 for d in dims[num_consts:]]
    rest_dims, same_dims = partition_list(gone, init_dims)
    cond_dims, body_dims = split_list([None if d is None else 0 for d in dims[:num_consts]], [cond_nconsts - sum(gone)])
    cond_dims, body_dims = [*cond_dims, *same_dims], [*body_dims, *same_dims]

    def over_batch(batched: list[bool]) -> Any:
        carry_dims = [0 if b else None for b in batched]
        body, dims_out = batch_jaxpr(params["body_jaxpr"], axis_size, [*body_dims, *carry_dims], batched)
        cond, (pred_dim,) = batch_jaxpr(params["cond_jaxpr"], axis_size, [*cond_dims, *carry_dims])
        return [pred_dim is not None or d is not None for d in dims_out], (body, cond, pred_dim)

    batched, (body, cond, pred_dim) = fixpoint(over_batch, [d is not None for d in rest_dims])
    if pred_dim is not None and has_only_debug_effects([body, cond]):
        outs = for_each_element(functools.partial(while_p.bind, **original[2]), axis_size, *original[:2])
        return outs, [0] * len(outs)
    if pred_dim is not None:
        refuse_effects(
            [body, cond],
            "vmap of while_loop over a mapped condition runs the body for elements that have ended, but the loop has "
            "effects ({}) that would then happen for those elements as well. Map only over values that the condition "
            "does not depend on, or move the effect out of the loop.",
        )
        body, cond = _per_element(body, cond, body_nconsts, cond_nconsts)
        body_nconsts += cond_nconsts
    consts, carry = split_list(operands, [params["cond_nconsts"] + params["body_nconsts"]])
    carry = [
        x if d is not None or not b else move_batch_axis(axis_size, None, 0, x)
        for x, d, b in zip(carry, rest_dims, batched, strict=True)
    ]
    cond_consts = consts[:cond_nconsts]
    extra = cond_consts if pred_dim is not None else []
    outs = while_p.bind(
        *cond_consts,
        *extra,
        *consts[cond_nconsts:],
        *carry,
        body_jaxpr=body,
        body_nconsts=body_nconsts,
        cond_jaxpr=cond,
        cond_nconsts=cond_nconsts,
    )
    same = select_list(gone, vals[num_consts:])
    return merge_lists(gone, outs, same), merge_lists(gone, [0 if b else None for b in batched], same_dims)


def _per_element(
    body: ClosedJaxpr, cond: ClosedJaxpr, body_nconsts: int, cond_nconsts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Return the body and condition of a loop that runs until the last element ends.

    The body keeps the values of elements that have ended. It evaluates the condition for each element, so it takes the
    condition's constants before its own.
    """
    from corejax_lax_basic import lax

    def step(*args: Any) -> list[Any]:
        cond_consts, body_consts, carry = split_list(args, [cond_nconsts, body_nconsts])
        (going,) = inline_closed(cond, [*cond_consts, *carry])
        new = inline_closed(body, [*body_consts, *carry])
        return [lax.choose(going, y, x) for x, y in zip(new, carry, strict=True)]

    def any_going(*args: Any) -> list[Any]:
        (going,) = inline_closed(cond, args)
        return [lax.reduce_or(going, (0,))]

    def make() -> tuple[ClosedJaxpr, ClosedJaxpr]:
        avals = [*cond.in_avals[:cond_nconsts], *body.in_avals]
        return (
            stage_closed(step, avals, body.jaxpr.debug_info),
            stage_closed(any_going, cond.in_avals, cond.jaxpr.debug_info),
        )

    return memoised(body, ("while per element", cond, body_nconsts, cond_nconsts), make)
