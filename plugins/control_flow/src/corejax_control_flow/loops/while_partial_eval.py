"""Partial evaluation of `while`, dead code elimination, and the error of transposition.

A loop of unknown length cannot stack residuals, as the size of the stack would be unknown. So the unknown half
recomputes the values of the known half that it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    PartialEvalTrace,
    Var,
    dce_jaxpr,
    fixpoint,
    fun_name,
    memoised,
    merge_lists,
    partial_eval_jaxpr,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    partition_list,
    split_list,
    transpose_rules,
)
from corejax.extend.messages import describe_source, not_of_rule
from corejax.extend.programs import dce_rules, keep_all, select_list
from corejax.extend.transforms import replayed_source
from corejax_control_flow.loops.while_rules import while_p
from corejax_control_flow.programs.rewriting import Flags, depends, either, refuse_effects, without_effects


class Pruned(NamedTuple):
    """A loop after dead code elimination.

    Attributes:
        params: params of the smaller loop.
        operands: flags of the original operands that it takes.
        carry: flags of the original carries that it has.
    """

    params: dict[str, Any]
    operands: list[bool]
    carry: list[bool]


def pruned(params: dict[str, Any], used: Flags) -> Pruned:
    """Drop the carries that are neither used nor read by the condition, and on which no such carry depends."""
    body, body_nconsts = params["body_jaxpr"], params["body_nconsts"]
    cond, cond_nconsts = params["cond_jaxpr"], params["cond_nconsts"]

    def make() -> Pruned:
        cond_used = dce_jaxpr(cond, [True])[1]

        def without_dead(carry: list[bool]) -> Any:
            new_body, body_used = dce_jaxpr(body, carry, [*(False for _ in range(body_nconsts)), *carry])
            return body_used[body_nconsts:], (new_body, body_used)

        carry, (new_body, body_used) = fixpoint(without_dead, either(used, cond_used[cond_nconsts:]))
        new_cond, cond_used = dce_jaxpr(cond, [True], [*(False for _ in range(cond_nconsts)), *carry])
        flags = [*cond_used[:cond_nconsts], *body_used]
        return Pruned(
            {
                "body_jaxpr": new_body,
                "body_nconsts": sum(body_used[:body_nconsts]),
                "cond_jaxpr": new_cond,
                "cond_nconsts": sum(cond_used[:cond_nconsts]),
            },
            flags,
            carry,
        )

    return memoised(body, ("while pruned", cond, body_nconsts, cond_nconsts, tuple(used)), make)


def while_dce(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Drop carries on which no used carry and no condition depends, and the loop if no carry is used."""
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    small = pruned(eqn.params, used_outputs)
    return small.operands, eqn.replace(
        invars=select_list(small.operands, eqn.invars),
        outvars=select_list(small.carry, eqn.outvars),
        params=small.params,
    )


dce_rules[while_p] = while_dce


# -- partial evaluation --------------------------------------------------------------------------------------


class _Halves(NamedTuple):
    """A loop, split into a loop for the known carries and one for the unknown carries.

    Attributes:
        known: params of the loop for the known carries, which takes all known operands.
        unknown: the loop for the unknown carries, which also has the known carries that it needs.
        carry: flags of the unknown carries.
        operands: flags of the unknown operands, which include the initial values of the unknown carries.
    """

    known: dict[str, Any]
    unknown: Pruned
    carry: list[bool]
    operands: list[bool]


def _unzip(params: dict[str, Any], unknowns: Flags) -> _Halves | None:
    """Split a loop, or return None if the condition is unknown.

    A carry is unknown if it is unknown in any iteration, hence the fixed point.
    """
    body, body_nconsts = params["body_jaxpr"], params["body_nconsts"]
    cond, cond_nconsts = params["cond_jaxpr"], params["cond_nconsts"]

    def make() -> _Halves | None:
        cond_consts, consts, carry = split_list(unknowns, [cond_nconsts, body_nconsts])

        def split(carry: list[bool]) -> Any:
            # The unknown loop runs both halves in one body, so that recomputation in its second half gains nothing.
            halves = partial_eval_jaxpr(body, [*consts, *carry], carry, keep_all)
            return halves[2], halves

        carry, (known, unknown, _, num_res) = fixpoint(split, carry)
        if depends(cond.jaxpr, [*cond_consts, *carry])[0]:
            return None
        known_body, _ = dce_jaxpr(known, [True] * carry.count(False) + [False] * num_res, True)
        flags = [not u for u in (*cond_consts, *carry)]
        known_cond, read = dce_jaxpr(without_unread(cond, flags), [True], flags)
        assert read == flags
        known_params = {
            "body_jaxpr": known_body,
            "body_nconsts": consts.count(False),
            "cond_jaxpr": known_cond,
            "cond_nconsts": cond_consts.count(False),
        }
        again = {
            "body_jaxpr": _joined(body, without_effects(known), unknown, [*consts, *carry], carry, num_res),
            "cond_jaxpr": without_effects(cond),
        }
        refuse_effects(
            [without_effects(known), again["cond_jaxpr"]],
            "differentiation of a while_loop computes part of its body a second time, but that part has effects ({}) "
            "that would then happen twice. Move the effect out of the loop, or use scan.",
        )
        operands = [*cond_consts, *consts, *carry]
        return _Halves(known_params, pruned({**params, **again}, carry), carry, operands)

    key = ("while halves", cond, body_nconsts, cond_nconsts, tuple(unknowns))
    return memoised(body, key, make)


def without_unread(closed: ClosedJaxpr, kept: Flags) -> ClosedJaxpr:
    """Drop the equations that depend on arguments that are not kept. No output depends on such an argument."""
    old = closed.jaxpr
    gone = set(partition_list(kept, old.invars)[0])
    eqns = []
    for eqn in old.eqns:
        if gone.isdisjoint(eqn.invars):
            eqns.append(eqn)
        else:
            gone.update(eqn.outvars)
    return ClosedJaxpr(Jaxpr(old.constvars, old.invars, eqns, old.outvars, old.debug_info), closed.consts)


def _joined(
    body: ClosedJaxpr, known: ClosedJaxpr, unknown: ClosedJaxpr, ins: Flags, outs: Flags, num_res: int
) -> ClosedJaxpr:
    """Join both halves of a body, one after the other, with the arguments and outputs of the body.

    The halves share the variables of the body, so that only residuals that are arguments or constants are renamed.
    """
    num_known = len(known.jaxpr.outvars) - num_res
    renamed: dict[Any, Any] = dict(zip(unknown.jaxpr.invars[:num_res], known.jaxpr.outvars[num_known:], strict=True))
    later = [eqn.replace(invars=[renamed.get(v, v) for v in eqn.invars]) for eqn in unknown.jaxpr.eqns]
    unknown_outs = [renamed.get(v, v) for v in unknown.jaxpr.outvars]
    invars = merge_lists(ins, known.jaxpr.invars, unknown.jaxpr.invars[num_res:])
    consts: dict[Any, Any] = {}
    for half in (known, unknown):
        consts.update(zip(half.jaxpr.constvars, half.consts, strict=True))
    outvars = merge_lists(outs, known.jaxpr.outvars[:num_known], unknown_outs)
    jaxpr = Jaxpr(list(consts), invars, [*known.jaxpr.eqns, *later], outvars, body.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, list(consts.values()))


def _runs(params: dict[str, Any]) -> bool:
    return bool(params["body_jaxpr"].out_avals or params["body_jaxpr"].effects or params["cond_jaxpr"].effects)


@partial_eval_rules.register(while_p)
def while_partial_eval(trace: PartialEvalTrace, args: Sequence[Any], **params: Any) -> list[Any]:
    """Run the loop for the known carries now, and record the loop for the unknown carries."""
    unknowns = [trace.is_unknown(x) for x in args]
    halves = _unzip(params, unknowns)
    if halves is None:
        return list(trace.record(while_p, args, params))
    outs = while_p.bind(*partition_list(halves.operands, args)[0], **halves.known) if _runs(halves.known) else []
    if not any(halves.carry):  # the unknown operands affect no carry
        return list(outs)
    recorded = trace.record(while_p, select_list(halves.unknown.operands, args), halves.unknown.params)
    is_unknown = select_list(halves.unknown.carry, halves.carry)
    return merge_lists(halves.carry, outs, select_list(is_unknown, recorded))


@partial_eval_jaxpr_rules.register(while_p)
def while_partial_eval_eqn(unknowns: Sequence[bool], eqn: JaxprEqn) -> Any:
    """Split one equation into a loop for the known carries and one for the unknown carries."""
    halves = _unzip(eqn.params, unknowns)
    if halves is None:
        return None, eqn, [True] * len(eqn.outvars), []
    known_eqn = eqn.replace(
        invars=partition_list(halves.operands, eqn.invars)[0],
        outvars=partition_list(halves.carry, eqn.outvars)[0],
        params=halves.known,
    )
    small = halves.unknown
    fresh = [v if u else Var(v.aval) for v, u in zip(eqn.outvars, halves.carry, strict=True)]
    unknown_eqn = eqn.replace(
        invars=select_list(small.operands, eqn.invars), outvars=select_list(small.carry, fresh), params=small.params
    )
    residuals = partition_list(select_list(small.operands, unknowns), unknown_eqn.invars)[0]
    return (
        known_eqn if _runs(halves.known) else None,
        unknown_eqn if any(halves.carry) else None,
        list(halves.carry),
        residuals,
    )


# -- transposition -------------------------------------------------------------------------------------------


@transpose_rules.register(while_p, symbolic_zeros=True)
def while_transpose(cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    """Raise ValueError, as the number of iterations to reverse is unknown. The message names alternatives."""
    body = params["body_jaxpr"].jaxpr.debug_info
    name = f" of {fun_name(body.fun)}" if getattr(body, "fun", None) is not None else ""
    source = replayed_source()
    at = f", at {describe_source(source)}" if source is not None else ""
    error = ValueError(
        f"Reverse-mode differentiation does not work for lax.while_loop{name}{at}, nor for lax.fori_loop "
        "with bounds that are not known while tracing: the number of iterations to reverse is not known. Use "
        "lax.scan, or lax.fori_loop with static bounds (Python integers), or forward mode (jvp, jacfwd)"
    )
    raise not_of_rule(error)
