"""The primitive `scan`, which applies a program to each element of arrays in turn, with a carry.

    scan : c -> h -> [x] -> (h, [y])        given a body (c, h, x) -> (h, y)

Operands are `num_consts` constants c, `num_carry` initial carries h, then the arrays x with a leading axis of
`length`. Results are the last carries and the stacked y. A carry has the type of the body's argument; the types of the
body's result and of the operand may differ from it only in weak type. Partial evaluation and transposition are in
`scan_partial_eval` and `scan_transpose`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    batch_jaxpr,
    dce_jaxpr,
    eval_jaxpr_on_host,
    fixpoint,
    impl_rules,
    instantiate,
    jvp_jaxpr,
    jvp_rules,
    move_batch_axis,
    split_list,
    spread_list,
    vmap_rules,
)
from corejax.extend.programs import dce_rules, select_list
from corejax.extend.transforms import unmapped_aval
from corejax_control_flow.loops.long_scans import run_long_scan
from corejax_control_flow.loops.scan_of_parts import divides_values, scan_of_parts
from corejax_control_flow.programs.rewriting import rearranged
from corejax_control_flow.programs.weak_types import same_but_weak_type

scan_p = Primitive(
    "scan",
    multiple_results=True,
    tags=("higher_order",),
    doc=(
        "Apply a program to each element of arrays in turn, with a carry. Params: jaxpr, length, linear, "
        "num_carry, num_consts, reverse, unroll."
    ),
)


@impl_rules.register(scan_p)
def scan_impl(
    *args: Any,
    jaxpr: ClosedJaxpr,
    length: int,
    num_carry: int,
    num_consts: int,
    reverse: bool,
    **params: Any,
) -> list[Any]:
    """Run a Python loop over NumPy arrays, or compile the scan if it is long."""
    if divides_values(jaxpr, num_carry, num_consts):
        numbers = {"num_carry": num_carry, "num_consts": num_consts, "length": length, "reverse": reverse}
        return scan_of_parts(scan_p, args, jaxpr=jaxpr, **numbers, **params)
    outs = run_long_scan(
        scan_p,
        args,
        jaxpr=jaxpr,
        length=length,
        num_carry=num_carry,
        num_consts=num_consts,
        reverse=reverse,
        **params,
    )
    if outs is not None:
        return outs
    consts, carry, xs = split_list(args, [num_consts, num_carry])
    ys = [np.empty((length, *a.shape), a.dtype) for a in jaxpr.out_avals[num_carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        outs = eval_jaxpr_on_host(jaxpr, [*consts, *carry, *(x[i, ...] for x in xs)])
        carry = outs[:num_carry]
        for stack, y in zip(ys, outs[num_carry:], strict=True):
            stack[i] = y
    return [*carry, *ys]


def stacked(length: int, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Add a leading axis of `length` to types."""
    return [unmapped_aval(length, 0, a) for a in avals]


@abstract_eval_rules.register(scan_p)
def scan_abstract_eval(
    *avals: ShapedArray,
    jaxpr: ClosedJaxpr,
    length: int,
    linear: tuple[bool, ...],
    num_carry: int,
    num_consts: int,
    reverse: bool,
    unroll: int,
) -> list[ShapedArray]:
    """Check the body against the operands and return the types of the carries and of the stacked results."""
    if length < 0 or unroll < 1:
        raise ValueError(
            f"scan: length must be at least 0 and unroll at least 1, got length={length} and unroll={unroll}"
        )
    takes, returns = jaxpr.in_avals, jaxpr.out_avals
    if not len(avals) == len(takes) == len(linear):
        raise TypeError(
            f"scan: a body of {len(takes)} arguments was given {len(avals)} operands and "
            f"{len(linear)} flags in `linear`"
        )
    if len(takes) < num_consts + num_carry or len(returns) < num_carry:
        raise TypeError(
            f"scan: the body must take {num_consts} constants and {num_carry} carries and return {num_carry} carries"
        )
    consts, carry, xs = split_list(takes, [num_consts, num_carry])
    expected = [*consts, *carry, *stacked(length, xs)]
    kinds = ["a constant"] * num_consts + ["an initial carry"] * num_carry + ["a scanned array"] * len(xs)
    for i, (got, want, kind) in enumerate(zip(avals, expected, kinds, strict=True)):
        if not same_but_weak_type(got, want):
            raise TypeError(f"scan: operand {i}, {kind}, is {got.str_short()}, the body takes {want.str_short()}")
    for i, (taken, returned) in enumerate(zip(carry, returns[:num_carry], strict=True)):
        if not same_but_weak_type(taken, returned):
            raise TypeError(
                f"scan: the body takes carry {i} as {taken.str_short()} and returns it as {returned.str_short()}"
            )
    return [*carry, *stacked(length, returns[num_carry:])]


@jvp_rules.register(scan_p, symbolic_zeros=True)
def scan_jvp(
    primals: Any,
    tangents: Any,
    *,
    jaxpr: ClosedJaxpr,
    linear: Any,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Any:
    """Bind one scan of the body's jvp. A carry has a tangent if it gets one in any iteration, hence the fixed point."""
    num_ys = len(jaxpr.out_avals) - num_carry
    nz_consts, nz_carry, nz_xs = split_list([t is not None for t in tangents], [num_consts, num_carry])

    def push(carry: list[bool]) -> Any:
        body, nz_out = jvp_jaxpr(jaxpr, [*nz_consts, *carry, *nz_xs], [*carry, *(False for _ in range(num_ys))])
        return nz_out[:num_carry], (body, nz_out)

    nz_carry, (body, nz_out) = fixpoint(push, nz_carry)
    nonzeros = [*nz_consts, *nz_carry, *nz_xs]
    tangents_in = [instantiate(t, x) if nz else None for t, x, nz in zip(tangents, primals, nonzeros, strict=True)]
    # The body takes all primals, then all tangents; a scan takes constants, carries and arrays in this order.
    count = len(nonzeros)
    places = spread_list(nonzeros, range(count, count + sum(nonzeros)))
    groups_in = zip(
        split_list(range(count), [num_consts, num_carry]), split_list(places, [num_consts, num_carry]), strict=True
    )
    order_in = [i for primal, tangent in groups_in for i in (*primal, *(j for j in tangent if j is not None))]
    places = spread_list(nz_out, range(len(nz_out), len(nz_out) + sum(nz_out)))
    groups_out = zip(split_list(range(len(nz_out)), [num_carry]), split_list(places, [num_carry]), strict=True)
    order_out = [i for primal, tangent in groups_out for i in (*primal, *(j for j in tangent if j is not None))]
    operands = [*primals, *(t for t in tangents_in if t is not None)]
    outs = scan_p.bind(
        *(operands[i] for i in order_in),
        jaxpr=rearranged(body, order_in, order_out),
        linear=tuple(linear[i] if i < count else True for i in order_in),
        num_carry=num_carry + sum(nz_carry),
        num_consts=num_consts + sum(nz_consts),
        **params,
    )
    result = dict(zip(order_out, outs, strict=True))
    return [result[i] for i in range(len(nz_out))], [None if j is None else result[j] for j in places]


@vmap_rules.register(scan_p)
def scan_vmap(
    axis_size: int,
    vals: Any,
    dims: Any,
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Any:
    """Bind one scan of the batched body. A carry is batched if any iteration batches it, hence the fixed point."""
    num_ys = len(jaxpr.out_avals) - num_carry
    consts, carry, xs = split_list(vals, [num_consts, num_carry])
    const_dims, carry_dims, x_dims = split_list(dims, [num_consts, num_carry])
    xs = [move_batch_axis(axis_size, 0, 1, x) if d == 0 else x for x, d in zip(xs, x_dims, strict=True)]
    element_dims = [None if d is None else max(d - 1, 0) for d in x_dims]

    def over_batch(batched: list[bool]) -> Any:
        dims_in = [*const_dims, *(0 if b else None for b in batched), *element_dims]
        body, dims_out = batch_jaxpr(jaxpr, axis_size, dims_in, [*batched, *(False for _ in range(num_ys))])
        return [d is not None for d in dims_out[:num_carry]], (body, dims_out)

    batched, (body, dims_out) = fixpoint(over_batch, [d is not None for d in carry_dims])
    carry = [
        move_batch_axis(axis_size, d, 0, x) if b else x for x, d, b in zip(carry, carry_dims, batched, strict=True)
    ]
    outs = scan_p.bind(*consts, *carry, *xs, jaxpr=body, num_carry=num_carry, num_consts=num_consts, **params)
    carry_out = [0 if b else None for b in batched]
    return outs, [*carry_out, *(None if d is None else d + 1 for d in dims_out[num_carry:])]


def scan_dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Drop unused results, and carries on which no used result depends."""
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    params = eqn.params
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    used_carry, used_ys = split_list(used_outputs, [num_carry])
    consts, _, xs = split_list([False] * len(eqn.invars), [num_consts, num_carry])

    def without_dead(used: list[bool]) -> Any:
        body, used_inputs = dce_jaxpr(params["jaxpr"], [*used, *used_ys], [*consts, *used, *xs])
        return used_inputs[num_consts : num_consts + num_carry], (body, used_inputs)

    used_carry, (body, used_inputs) = fixpoint(without_dead, used_carry)
    new_params = {
        **params,
        "jaxpr": body,
        "linear": tuple(select_list(used_inputs, params["linear"])),
        "num_consts": sum(used_inputs[:num_consts]),
        "num_carry": sum(used_carry),
    }
    # A carry may be needed inside the loop although its last value is not used. Its output variable stays.
    outvars = select_list([*used_carry, *used_ys], eqn.outvars)
    return used_inputs, eqn.replace(invars=select_list(used_inputs, eqn.invars), outvars=outvars, params=new_params)


dce_rules[scan_p] = scan_dce
