"""From program to program, for the rules of higher-order primitives; `partial_eval_jaxpr` has its own file.

    jvp_jaxpr : (a -> b) to ((a, T a) -> (b, T b))        batch_jaxpr : (a -> b) to (n a -> n b)
    transpose_jaxpr : (a -o b) to (CT b -o CT a)          dce_jaxpr : (a -> b) to (used a -> used b)

All are memoised on the program that they are given, by their other arguments and the settings that a trace depends
on: the same program object asked for the same thing gives the same object again, whose own results are remembered in
turn. They never change their arguments. Constants of a program stay constants of what is made of it;
`close_over_consts` and `bind_consts` make arguments of them and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from corejax.core.trace import state
from corejax.errors import NotLinearError
from corejax.interpreters.batching import INHERITED, batch_flat, mapped_axis, move_batch_axis, unmapped_aval
from corejax.interpreters.jvp import instantiate as instantiate_zero
from corejax.interpreters.jvp import jvp_flat, tangent_aval
from corejax.interpreters.lists import merge_lists, partition_list, select_list, split_list, spread_list
from corejax.interpreters.splitting import unzipped
from corejax.interpreters.staging import stage_closed
from corejax.interpreters.transposition import UndefPrimal, backward_pass
from corejax.ir.dce import dce_jaxpr as dce_open_jaxpr
from corejax.ir.interpret import eval_jaxpr, jaxpr_as_fun
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, variables_read
from corejax.settings.config import config

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


def flag_each(value: bool | Flags, count: int) -> tuple[bool, ...]:
    """One flag each, of one for all."""
    return (value,) * count if isinstance(value, bool) else tuple(value)


def one_for_each(name: str, given: Sequence[T], values: Sequence[Any], what: str = "arguments") -> tuple[T, ...]:
    """What was given for each of a program's arguments or outputs.

    Raises:
        ValueError: there is more or less than one for each; says the name, function and parameter.
    """
    found = tuple(given)
    if len(found) != len(values):
        raise ValueError(f"{name} says one thing for each of {len(values)} {what}, got {len(found)}: {list(found)}")
    return found


def with_used_consts(closed: ClosedJaxpr, jaxpr: Jaxpr) -> ClosedJaxpr:
    """Give a program made of a closed one's equations those of its constants that it uses."""
    used = variables_read(jaxpr.eqns, jaxpr.outvars)
    pairs = [(v, c) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True) if v in used]
    opened = Jaxpr([v for v, _ in pairs], jaxpr.invars, jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info)
    return ClosedJaxpr(opened, [c for _, c in pairs])


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
    nonzeros = one_for_each("jvp_jaxpr: nonzeros", nonzeros, closed.in_avals)
    make_real = flag_each(instantiate, len(closed.out_avals))

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        nonzeros_out: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            primals, rest = split_list(args, [len(nonzeros)])
            tangents = spread_list(nonzeros, rest)
            outs, tangents_out = jvp_flat(jaxpr_as_fun(closed), primals, tangents, closed.jaxpr.debug_info)
            tangents_out = [
                instantiate_zero(t, x) if real else t for t, x, real in zip(tangents_out, outs, make_real, strict=True)
            ]
            nonzeros_out.extend(t is not None for t in tangents_out)
            return [*outs, *(t for t in tangents_out if t is not None)]

        tangent_avals = [tangent_aval(a) for a in select_list(nonzeros, closed.in_avals)]
        new = stage_closed(flat, [*closed.in_avals, *tangent_avals], closed.jaxpr.debug_info)
        return new, nonzeros_out

    return memoised(closed, ("jvp", nonzeros, make_real), make)


def batch_jaxpr(
    closed: ClosedJaxpr,
    axis_size: int,
    dims_in: Sequence[int | None],
    instantiate: bool | Flags = False,
    *,
    axis_name: Any = INHERITED,
) -> tuple[ClosedJaxpr, list[int | None]]:
    """The program over a batch.

    Args:
        closed: a program `a -> b`.
        axis_size: length of the batch.
        dims_in: batching dimension of each argument, None for those that are not batched.
        instantiate: outputs that are batched even if they do not depend on a batched argument, one flag each or
            one for all.
        axis_name: the batch's name for collectives. By default none; in a vmap rule that of its axis, which is split as
            that is.

    Returns:
        The program of arguments with an axis of `axis_size` at their batching dimension, and the batching dimension
        of each output: 0 or None.
    """
    dims_in = one_for_each("batch_jaxpr: dims_in", dims_in, closed.in_avals)
    make_real = flag_each(instantiate, len(closed.out_avals))
    axis = mapped_axis(axis_name)

    def make() -> tuple[ClosedJaxpr, list[int | None]]:
        dims_out: list[int | None] = []

        def flat(*args: Any) -> list[Any]:
            outs, dims = batch_flat(jaxpr_as_fun(closed), axis_size, args, dims_in, axis, closed.jaxpr.debug_info)
            moved = []
            for x, d, real in zip(outs, dims, make_real, strict=True):
                batched = d is not None or real
                moved.append(move_batch_axis(axis_size, d, 0, x) if batched else x)
                dims_out.append(0 if batched else None)
            return moved

        avals = [unmapped_aval(axis_size, d, a) for d, a in zip(dims_in, closed.in_avals, strict=True)]
        return stage_closed(flat, avals, closed.jaxpr.debug_info), dims_out

    return memoised(closed, ("batch", axis_size, dims_in, make_real, axis), make)


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
    linear = one_for_each("transpose_jaxpr: linear", linear, closed.in_avals)
    nonzero_cts = one_for_each("transpose_jaxpr: nonzero_cts", nonzero_cts, closed.out_avals, "outputs")

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        nonzeros_out: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            res, given = split_list(args, [len(res_avals)])
            operands = merge_lists(linear, res, map(UndefPrimal, linear_avals))
            cts = spread_list(nonzero_cts, given)
            cts_in = select_list(linear, backward_pass(jaxpr, closed.consts, operands, cts))
            nonzeros_out.extend(ct is not None for ct in cts_in)
            return [ct for ct in cts_in if ct is not None]

        res_avals, linear_avals = partition_list(linear, closed.in_avals)
        ct_avals = [tangent_aval(a) for a in select_list(nonzero_cts, closed.out_avals)]
        jaxpr = closed.jaxpr
        try:
            return stage_closed(flat, [*res_avals, *ct_avals], jaxpr.debug_info), nonzeros_out
        except NotLinearError:
            # A loop or call may give, beside what is linear, results of `res` alone, by which the rest multiplies.
            split = unzipped(jaxpr, linear)
            if split is None:
                raise
        jaxpr = split
        return stage_closed(flat, [*res_avals, *ct_avals], jaxpr.debug_info), nonzeros_out

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
    used_outputs = one_for_each("dce_jaxpr: used_outputs", used_outputs, closed.out_avals, "outputs")
    keep = flag_each(instantiate, len(closed.in_avals))

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        new, used_inputs = dce_open_jaxpr(closed.jaxpr, used_outputs, keep)
        return with_used_consts(closed, new), used_inputs

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
