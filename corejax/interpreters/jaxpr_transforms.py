"""From program to program, for the rules of higher-order primitives.

All are memoised on the program that they are given, by their other arguments and the settings that a trace depends
on: the same program object asked for the same thing gives the same object again, whose own results are remembered in
turn. They never change their arguments. Constants of a program stay constants of what is made of it; `hoist_consts`
and `bind_consts` make arguments of them and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from corejax.config import config
from corejax.interpreters.batching import batch_flat, move_batch_axis, unmapped_aval
from corejax.interpreters.jvp import instantiate as instantiate_zero
from corejax.interpreters.jvp import jvp_flat, tangent_aval
from corejax.interpreters.rematerialization import Policy, recompute
from corejax.interpreters.staging import stage_closed
from corejax.interpreters.transposition import UndefPrimal, backward_pass, zero_cotangent
from corejax.ir.check import check_partial_eval
from corejax.ir.dce import dce_jaxpr as dce_open_jaxpr
from corejax.ir.dce import misfit_of_equations
from corejax.ir.interpret import eval_jaxpr, jaxpr_as_fun
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from corejax.rules import partial_eval_jaxpr_rules
from corejax.run_rule import mismatch, shown
from corejax.trace import state

Flags = Sequence[bool]
T = TypeVar("T")


def memoised(closed: ClosedJaxpr, key: tuple[Any, ...], make: Callable[[], T]) -> T:
    """What `make` gives, kept with the program: how a transformation of programs is done once for each program.

    Args:
        closed: the program.
        key: what the result depends on besides the program, hashable; it starts with the transformation's name.
            The settings that a trace depends on and the named axes in force are added to it.
        make: computes the result, not None.
    """
    key = (*key, config.trace_key(), state.axis_env)
    found: T | None = closed.memo.get(key)
    if found is None:
        found = closed.memo[key] = make()
    return found


def _flags(value: bool | Flags, count: int) -> tuple[bool, ...]:
    return (value,) * count if isinstance(value, bool) else tuple(value)


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: Flags, instantiate: bool | Flags = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program that pushes tangents forward.

    Args:
        closed: a program `a -> b`.
        nonzeros: which arguments have tangents, one flag each.
        instantiate: outputs whose zero tangents are made real, one flag each or one for all.

    Returns:
        `(a, nonzero T a) -> (b, nonzero T b)`, and which outputs have tangents, one flag each. All primals come
        before all tangents, tangents in the order of their primals; a tangent has its primal's type, strongly typed.
    """
    nonzeros = tuple(nonzeros)
    make_real = _flags(instantiate, len(closed.out_avals))

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        nonzeros_out: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            primals, rest = args[: len(nonzeros)], iter(args[len(nonzeros) :])
            tangents = [next(rest) if nz else None for nz in nonzeros]
            outs, tangents_out = jvp_flat(jaxpr_as_fun(closed), primals, tangents, closed.jaxpr.debug_info)
            tangents_out = [
                instantiate_zero(t, x) if real else t for t, x, real in zip(tangents_out, outs, make_real, strict=True)
            ]
            nonzeros_out.extend(t is not None for t in tangents_out)
            return [*outs, *(t for t in tangents_out if t is not None)]

        tangent_avals = [tangent_aval(a) for a, nz in zip(closed.in_avals, nonzeros, strict=True) if nz]
        new = stage_closed(flat, [*closed.in_avals, *tangent_avals], closed.jaxpr.debug_info)
        return new, nonzeros_out

    return memoised(closed, ("jvp", nonzeros, make_real), make)


def batch_jaxpr(
    closed: ClosedJaxpr, axis_size: int, dims_in: Sequence[int | None], instantiate: bool | Flags = False
) -> tuple[ClosedJaxpr, list[int | None]]:
    """The program over a batch.

    Args:
        closed: a program `a -> b`.
        axis_size: length of the batch.
        dims_in: batching dimension of each argument, None for those that are not batched.
        instantiate: outputs that are batched even if they do not depend on a batched argument, one flag each or
            one for all.

    Returns:
        The program of arguments with an axis of `axis_size` at their batching dimension, and the batching dimension
        of each output: 0 or None.
    """
    dims_in = tuple(dims_in)
    make_real = _flags(instantiate, len(closed.out_avals))

    def make() -> tuple[ClosedJaxpr, list[int | None]]:
        dims_out: list[int | None] = []

        def flat(*args: Any) -> list[Any]:
            outs, dims = batch_flat(jaxpr_as_fun(closed), axis_size, args, dims_in, debug=closed.jaxpr.debug_info)
            moved = []
            for x, d, real in zip(outs, dims, make_real, strict=True):
                batched = d is not None or real
                moved.append(move_batch_axis(axis_size, d, 0, x) if batched else x)
                dims_out.append(0 if batched else None)
            return moved

        avals = [unmapped_aval(axis_size, d, a) for d, a in zip(dims_in, closed.in_avals, strict=True)]
        return stage_closed(flat, avals, closed.jaxpr.debug_info), dims_out

    return memoised(closed, ("batch", axis_size, dims_in, make_real), make)


def partial_eval_jaxpr(
    closed: ClosedJaxpr, unknowns: Flags, instantiate: bool | Flags = False, policy: Policy | None = None
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
    """Unzip a program into what is known and what is not.

    Args:
        closed: a program `(a1, a2) -> (b1, b2)`, arguments in any order.
        unknowns: which arguments are unknown (`a2`), one flag each.
        instantiate: outputs that are treated as unknown even if they are known, one flag each or one for all.
        policy: which values of the known half may be residuals, `policy(primitive, *avals, **params) -> bool`
            asked of the equation that makes them; the unknown half computes the others again from known
            arguments, which may always be residuals. Without it all may.

    Returns:
        `known : a1 -> (b1, res)`, `unknown : (res, a2) -> b2`, which outputs are unknown, and the number of
        residuals. A residual may be an argument of the known half, or one of its other outputs too (see
        `without_forwarded`); none is unused by the unknown half, and none is a constant of the program, for both
        halves have those that they use. The order of `a1`, `a2`, `b1` and `b2` is the program's.
    """
    unknowns = tuple(unknowns)
    make_unknown = _flags(instantiate, len(closed.out_avals))
    return memoised(
        closed,
        ("partial_eval", unknowns, make_unknown, policy),
        lambda: _unzip(closed, unknowns, make_unknown, policy),
    )


def _unzip(
    closed: ClosedJaxpr, unknowns: tuple[bool, ...], make_unknown: tuple[bool, ...], policy: Policy | None
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
    jaxpr = closed.jaxpr
    eqns1, eqns2, unknown_vars = _split_equations(jaxpr, unknowns)
    unknowns_out = [
        force or (type(v) is Var and v in unknown_vars) for v, force in zip(jaxpr.outvars, make_unknown, strict=True)
    ]
    outs1 = [v for v, u in zip(jaxpr.outvars, unknowns_out, strict=True) if not u]
    outs2 = [v for v, u in zip(jaxpr.outvars, unknowns_out, strict=True) if u]
    ins1 = [v for v, u in zip(jaxpr.invars, unknowns, strict=True) if not u]
    ins2 = [v for v, u in zip(jaxpr.invars, unknowns, strict=True) if u]
    eqns2 = dce_open_jaxpr(Jaxpr((), ins2, eqns2, outs2), [True] * len(outs2), True)[0].eqns
    bound = {*ins2, *jaxpr.constvars}  # both halves have the constants
    residuals = _free(eqns2, outs2, bound)
    if policy is not None:
        eqns1, again, _ = recompute(eqns1, residuals, policy)
        eqns2 = [*again, *eqns2]
        residuals = _free(eqns2, outs2, bound)
    first = Jaxpr((), ins1, eqns1, [*outs1, *residuals], jaxpr.debug_info)
    known = _with_consts(closed, dce_open_jaxpr(first, [True] * len(first.outvars), True)[0])
    unknown = _with_consts(closed, Jaxpr((), [*residuals, *ins2], eqns2, outs2, jaxpr.debug_info))
    if config.check_jaxprs:
        check_partial_eval(jaxpr, known.jaxpr, unknown.jaxpr, unknowns, unknowns_out)
    return known, unknown, unknowns_out, len(residuals)


def _split_equations(jaxpr: Jaxpr, unknowns: Flags) -> tuple[list[JaxprEqn], list[JaxprEqn], set[Any]]:
    """Equations of the known half, those of the unknown half, and the variables that are unknown."""
    unknown_vars: set[Any] = {v for v, u in zip(jaxpr.invars, unknowns, strict=True) if u}
    eqns1: list[JaxprEqn] = []
    eqns2: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        unks_in = [v in unknown_vars for v in eqn.invars]
        if not any(unks_in):
            eqns1.append(eqn)
            continue
        rule = partial_eval_jaxpr_rules.table.get(eqn.primitive)
        if rule is None:
            unknown_vars.update(eqn.outvars)
            eqns2.append(eqn)
            continue
        split = rule(unks_in, eqn)
        if not isinstance(split, list | tuple) or len(split) != 4:
            wanted = "where it has to give (eqn_known, eqn_unknown, unknowns_out, residuals)"
            raise _bad_split(eqn, f"{shown(split)} {wanted}")
        eqn1, eqn2, unks_out, _ = split
        # One equation or a list: a loop's rule puts what is invariant before it.
        known = [] if eqn1 is None else eqn1 if isinstance(eqn1, list) else [eqn1]
        unknown = [] if eqn2 is None else [eqn2]
        _check_split(eqn, known, unknown, unks_out, unknown_vars)
        unknown_vars.update(v for v, u in zip(eqn.outvars, unks_out, strict=True) if u)
        eqns1.extend(known)
        eqns2.extend(unknown)
    return eqns1, eqns2, unknown_vars


def _bad_split(eqn: JaxprEqn, problem: str) -> TypeError:
    return mismatch(partial_eval_jaxpr_rules, eqn.primitive, problem, eqn.source_info)


def _check_split(
    eqn: JaxprEqn, known: Sequence[JaxprEqn], unknown: Sequence[JaxprEqn], unks_out: Flags, unknown_vars: set[Any]
) -> None:
    """Check the equations that a rule makes of one: that they give its results, and from what is known.

    Raises:
        TypeError: they do not; names the rule.
    """
    if not isinstance(unks_out, list | tuple) or len(unks_out) != len(eqn.outvars):
        raise _bad_split(eqn, f"{shown(unks_out)} as unknowns_out, for {len(eqn.outvars)} results")
    for v in (v for e in known for v in e.invars):
        if v in unknown_vars:
            raise _bad_split(eqn, f"an eqn_known that uses an unknown operand of type {v.aval.str_short()}")
    problem = misfit_of_equations([*known, *unknown], eqn.invars, ())
    if problem is not None:
        raise _bad_split(eqn, problem)
    bound_in = [{v for e in eqns for v in e.outvars} for eqns in (known, unknown)]
    for i, (v, unk) in enumerate(zip(eqn.outvars, unks_out, strict=True)):
        if v not in bound_in[bool(unk)]:
            which = "eqn_unknown" if unk else "eqn_known"
            raise _bad_split(eqn, f"no {which} that binds result {i}, which unknowns_out says is {which[4:]}")


def _free(eqns: Sequence[JaxprEqn], outvars: Sequence[Any], bound: set[Any]) -> list[Var]:
    """Variables that equations and outputs use and nothing here binds, in the order of their first use."""
    found: dict[Var, None] = {}
    bound = set(bound)
    for eqn in eqns:
        found.update((v, None) for v in eqn.invars if type(v) is Var and v not in bound)
        bound.update(eqn.outvars)
    found.update((v, None) for v in outvars if type(v) is Var and v not in bound)
    return list(found)


def without_forwarded(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[tuple[bool, int]]]:
    """The program without outputs that are just its arguments or repeat another output.

    Args:
        closed: a program `a -> b`.

    Returns:
        The smaller program, and for each output of the whole: whether it is an argument, and the index of that
        argument or of the smaller program's output. Memoised.
    """
    found = closed.memo.get("without_forwarded")
    if found is None:
        jaxpr = closed.jaxpr
        position = {v: i for i, v in enumerate(jaxpr.invars)}
        kept: dict[Any, int] = {}
        plan = [
            (True, position[v]) if type(v) is Var and v in position else (False, kept.setdefault(v, len(kept)))
            for v in jaxpr.outvars
        ]
        smaller = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns, list(kept), jaxpr.debug_info)
        found = closed.memo["without_forwarded"] = (ClosedJaxpr(smaller, closed.consts), plan)
    return found


def _with_consts(closed: ClosedJaxpr, jaxpr: Jaxpr) -> ClosedJaxpr:
    """Give a program made of a closed one's equations those of its constants that it uses."""
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var} | {
        v for v in jaxpr.outvars if type(v) is Var
    }
    pairs = [(v, c) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True) if v in used]
    opened = Jaxpr([v for v, _ in pairs], jaxpr.invars, jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info)
    return ClosedJaxpr(opened, [c for _, c in pairs])


def transpose_jaxpr(closed: ClosedJaxpr, linear: Flags, nonzero_cts: Flags) -> tuple[ClosedJaxpr, list[bool]]:
    """The program that pulls cotangents back.

    Args:
        closed: a program `(res, a) -> b`, linear in `a`, arguments in any order. It may compute with `res` before
            that: the transposed program does so first.
        linear: which arguments are linear (`a`), one flag each.
        nonzero_cts: which outputs have cotangents, one flag each.

    Returns:
        `(res, nonzero CT b) -> nonzero CT a`, and which linear arguments get cotangents: one flag for each of `a`,
        not for each argument. A cotangent has the type of what it belongs to, strongly typed.
    """
    linear = tuple(linear)
    nonzero_cts = tuple(nonzero_cts)

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        nonzeros_out: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            values = iter(args)
            operands = [UndefPrimal(a) if lin else next(values) for a, lin in zip(closed.in_avals, linear, strict=True)]
            cts = [next(values) if nz else None for nz in nonzero_cts]
            cts_in = backward_pass(closed.jaxpr, closed.consts, operands, cts)
            cts_in = [ct for ct, lin in zip(cts_in, linear, strict=True) if lin]
            nonzeros_out.extend(ct is not None for ct in cts_in)
            return [ct for ct in cts_in if ct is not None]

        res_avals = [a for a, lin in zip(closed.in_avals, linear, strict=True) if not lin]
        ct_avals = [tangent_aval(a) for a, nz in zip(closed.out_avals, nonzero_cts, strict=True) if nz]
        return stage_closed(flat, [*res_avals, *ct_avals], closed.jaxpr.debug_info), nonzeros_out

    return memoised(closed, ("transpose", linear, nonzero_cts), make)


def dce_jaxpr(
    closed: ClosedJaxpr, used_outputs: Flags, instantiate: bool | Flags = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program without what the used outputs do not need; equations with effects stay.

    Args:
        closed: a program `a -> b`.
        used_outputs: which outputs are used, one flag each; the others are dropped.
        instantiate: arguments that are kept although nothing uses them, one flag each or one for all.

    Returns:
        `used a -> used b`, and which arguments it still has, one flag each. Constants that nothing uses are dropped.
    """
    used_outputs = tuple(used_outputs)
    keep = _flags(instantiate, len(closed.in_avals))

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        new, used_inputs = dce_open_jaxpr(closed.jaxpr, used_outputs, keep)
        return _with_consts(closed, new), used_inputs

    return memoised(closed, ("dce", used_outputs, keep), make)


def inline_closed(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Bind a program's equations here instead of calling it."""
    return eval_jaxpr(closed.jaxpr, closed.consts, args)


def inline_equations(closed: ClosedJaxpr, operands: Sequence[Any]) -> tuple[list[JaxprEqn], list[Any]]:
    """A program's equations on other operands: for rules of `partial_eval_jaxpr`, which give equations.

    Args:
        closed: a program; without consts, for which the program around the equations has no binders.
        operands: variables or literals, one for each argument.

    Returns:
        The equations, with variables of their own, and the atoms that stand for the outputs.

    Raises:
        ValueError: the program has consts (`close_over_consts` makes arguments of them), or there are more or fewer
            operands than arguments.
    """
    if closed.jaxpr.constvars:
        raise ValueError(
            f"inline_equations takes a program without consts, this one has {len(closed.jaxpr.constvars)}; make them "
            "arguments (close_over_consts) and pass their values as operands"
        )
    env: dict[Any, Any] = dict(zip(closed.jaxpr.invars, operands, strict=True))
    eqns = []
    for eqn in closed.jaxpr.eqns:
        invars = [v if type(v) is Literal else env[v] for v in eqn.invars]
        outvars = [Var(v.aval) for v in eqn.outvars]
        env.update(zip(eqn.outvars, outvars, strict=True))
        eqns.append(eqn.replace(invars=invars, outvars=outvars))
    return eqns, [v if type(v) is Literal else env[v] for v in closed.jaxpr.outvars]


__all__ = [
    "batch_jaxpr",
    "dce_jaxpr",
    "inline_closed",
    "inline_equations",
    "jvp_jaxpr",
    "memoised",
    "partial_eval_jaxpr",
    "transpose_jaxpr",
    "without_forwarded",
    "zero_cotangent",
]
