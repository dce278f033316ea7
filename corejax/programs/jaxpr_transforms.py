"""Transformations from program to program, for rules of higher-order primitives; see also `partial_eval_jaxpr`.

    jvp_jaxpr : (a -> b) to ((a, T a) -> (b, T b))        batch_jaxpr : (a -> b) to (n a -> n b)
    transpose_jaxpr : (a -o b) to (CT b -o CT a)          dce_jaxpr : (a -> b) to (used a -> used b)

Each one evaluates the program under the interpreter of that name and stages the result. Results are cached on the
program object, by the other arguments and the settings that tracing depends on, so that repeated transformations of a
program return the same object, which again has a cache; compiled executables are found by it. Programs are never
modified, so a cached result stays right. Constants stay constants; `close_over_consts` turns them into arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from corejax.arrays.array import Value
from corejax.arrays.cells import Cell
from corejax.base.lists import merge_lists, partition_list, select_list, split_list, spread_list
from corejax.core.avals import Dims, Operands
from corejax.core.trace import state
from corejax.errors import NotLinearError
from corejax.interpreters.batching import INHERITED, batch_flat, mapped_axis, move_batch_axis, unmapped_aval
from corejax.interpreters.jvp import instantiate as instantiate_zero
from corejax.interpreters.jvp import jvp_flat, tangent_aval
from corejax.interpreters.staging import refused, stage_closed, stage_with_cells
from corejax.interpreters.transposition import UndefPrimal, backward_pass
from corejax.ir.dce import dce_jaxpr as dce_open_jaxpr
from corejax.ir.interpret import eval_jaxpr, jaxpr_as_fun
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, variables_read
from corejax.programs.splitting import unzipped
from corejax.settings.config import config

Flags = Sequence[bool]
WithFlags = tuple[ClosedJaxpr, list[bool]]
T = TypeVar("T")


def memoised(closed: ClosedJaxpr, key: tuple[object, ...], make: Callable[[], T]) -> T:
    """Return the result of `make()`, cached on the program.

    Args:
        closed: the program.
        key: hashable; starts with the transformation's name and has everything else that the result depends on. The
            settings that tracing depends on and the active named axes are added to it.
        make: computes the result, not None.
    """
    key = (*key, config.trace_key(), state.axis_env)
    result: T | None = closed.memo.get(key)
    if result is None:
        result = closed.memo[key] = make()
    return result


def broadcast_flag(value: bool | Flags, count: int) -> tuple[bool, ...]:
    """Return a tuple of `count` flags, from one flag for all or from a sequence of flags."""
    return (value,) * count if isinstance(value, bool) else tuple(value)


def check_length(name: str, items: Sequence[T], values: Operands, what: str = "arguments") -> tuple[T, ...]:
    """Return `items` as a tuple after checking that it has one item for each of a program's arguments or outputs.

    Raises:
        ValueError: the number differs; the message has `name`, which names the function and its parameter.
    """
    checked = tuple(items)
    if len(checked) != len(values):
        raise ValueError(f"{name} has one item for each of {len(values)} {what}, got {len(checked)}: {list(checked)}")
    return checked


def with_used_consts(closed: ClosedJaxpr, jaxpr: Jaxpr) -> ClosedJaxpr:
    """Close a program built from the equations of `closed` over those constants of `closed` that it uses."""
    used = variables_read(jaxpr.eqns, jaxpr.outvars)
    pairs = [(v, c) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True) if v in used]
    opened = Jaxpr([v for v, _ in pairs], jaxpr.invars, jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info)
    return ClosedJaxpr(opened, [c for _, c in pairs])


def jvp_jaxpr(closed: ClosedJaxpr, nonzeros: Flags, instantiate: bool | Flags = False) -> WithFlags:
    """Return the program that pushes tangents forward.

    Args:
        closed: a program `a -> b`.
        nonzeros: for each argument, whether it has a tangent.
        instantiate: for which outputs to return arrays of zeros for zero tangents, a flag for each or one for all.

    Returns:
        `(a, nonzero T a) -> (b, nonzero T b)`, and for each output whether it has a tangent. All primals come before
        all tangents, tangents in the order of their primals; a tangent has its primal's type, strongly typed.
    """
    nonzeros = check_length("jvp_jaxpr: nonzeros", nonzeros, closed.in_avals)
    make_real = broadcast_flag(instantiate, len(closed.out_avals))

    def make() -> WithFlags:
        nonzeros_out: list[bool] = []

        def flat(*args: object) -> list[Any]:
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
        return dce_jaxpr(new, [True] * len(new.out_avals), True)[0], nonzeros_out  # without unused tangents

    return memoised(closed, ("jvp", nonzeros, make_real), make)


def batch_jaxpr(
    closed: ClosedJaxpr,
    axis_size: int,
    dims_in: Dims,
    instantiate: bool | Flags = False,
    *,
    axis_name: object = INHERITED,
) -> tuple[ClosedJaxpr, list[int | None]]:
    """Return the program over a batch.

    Args:
        closed: a program `a -> b`.
        axis_size: length of the batch.
        dims_in: the batching dimension of each argument, None for arguments that are not batched.
        instantiate: which outputs to batch even if they do not depend on a batched argument, a flag for each or one
            for all.
        axis_name: the name of the batching axis for collectives. The default is no name, or, in a vmap rule, the axis
            of that rule.

    Returns:
        The program, which takes arguments with an axis of `axis_size` at their batching dimensions, and the batching
        dimension of each output: 0 or None.
    """
    dims_in = check_length("batch_jaxpr: dims_in", dims_in, closed.in_avals)
    make_real = broadcast_flag(instantiate, len(closed.out_avals))
    axis = mapped_axis(axis_name)

    def make() -> tuple[ClosedJaxpr, list[int | None]]:
        dims_out: list[int | None] = []

        def flat(*args: object) -> list[Any]:
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


def transpose_jaxpr(closed: ClosedJaxpr, linear: Flags, nonzero_cts: Flags) -> WithFlags:
    """Return the program that pulls cotangents back.

    Args:
        closed: a program `(res, a) -> b`, linear in `a`, with arguments in any order. It may also compute with `res`
            alone; the transposed program does that first.
        linear: for each argument, whether it is linear (`a`).
        nonzero_cts: for each output, whether it has a cotangent.

    Returns:
        `(res, nonzero CT b) -> nonzero CT a`, and for each linear argument (each of `a`) whether it gets a cotangent.
        A cotangent has the type of its argument or output, strongly typed.

    Raises:
        ValueError: a backward rule in the program uses a cell, see `transpose_with_cells`.
    """
    pulled, nonzeros, cells = transpose_with_cells(closed, linear, nonzero_cts)
    if cells:
        raise refused(cells[0], "a backward rule")
    return pulled, nonzeros


def transpose_with_cells(
    closed: ClosedJaxpr, linear: Flags, nonzero_cts: Flags
) -> tuple[ClosedJaxpr, list[bool], tuple[Cell, ...]]:
    """Do as `transpose_jaxpr`; return the cells as well, whose values are the program's last arguments and results."""
    linear = check_length("transpose_jaxpr: linear", linear, closed.in_avals)
    nonzero_cts = check_length("transpose_jaxpr: nonzero_cts", nonzero_cts, closed.out_avals, "outputs")

    def make() -> tuple[ClosedJaxpr, list[bool], tuple[Cell, ...]]:
        nonzeros_out: list[bool] = []

        def flat(*args: Any) -> list[Value]:
            res, nonzero = split_list(args, [len(res_avals)])
            operands = merge_lists(linear, res, map(UndefPrimal, linear_avals))
            cts = spread_list(nonzero_cts, nonzero)
            cts_in = select_list(linear, backward_pass(jaxpr, closed.consts, operands, cts))
            nonzeros_out.extend(ct is not None for ct in cts_in)
            return [ct for ct in cts_in if ct is not None]

        res_avals, linear_avals = partition_list(linear, closed.in_avals)
        ct_avals = [tangent_aval(a) for a in select_list(nonzero_cts, closed.out_avals)]
        jaxpr = closed.jaxpr
        try:
            pulled, consts, cells = stage_with_cells(flat, [*res_avals, *ct_avals], jaxpr.debug_info)
            return ClosedJaxpr(pulled, consts), nonzeros_out, cells
        except NotLinearError:
            # An equation with a program may have linear results and results that depend on `res` only, by which later
            # equations multiply. Splitting such equations in two makes the second kind of results known.
            split = unzipped(jaxpr, linear)
            if split is None:
                raise
        jaxpr = split
        pulled, consts, cells = stage_with_cells(flat, [*res_avals, *ct_avals], jaxpr.debug_info)
        return ClosedJaxpr(pulled, consts), nonzeros_out, cells

    return memoised(closed, ("transpose", linear, nonzero_cts), make)


def dce_jaxpr(closed: ClosedJaxpr, used_outputs: Flags, instantiate: bool | Flags = False) -> WithFlags:
    """Drop everything that the used outputs do not need; keep equations with effects.

    Args:
        closed: a program `a -> b`.
        used_outputs: for each output, whether it is used; the others are dropped.
        instantiate: which unused arguments to keep, a flag for each or one for all.

    Returns:
        `used a -> used b`, and for each argument whether it was kept. Unused constants are dropped.
    """
    used_outputs = check_length("dce_jaxpr: used_outputs", used_outputs, closed.out_avals, "outputs")
    keep = broadcast_flag(instantiate, len(closed.in_avals))

    def make() -> WithFlags:
        new, used_inputs = dce_open_jaxpr(closed.jaxpr, used_outputs, keep)
        return with_used_consts(closed, new), used_inputs

    return memoised(closed, ("dce", used_outputs, keep), make)


def inline_closed(closed: ClosedJaxpr, args: Operands) -> list[Any]:
    """Bind a program's equations in place, instead of calling the program."""
    return eval_jaxpr(closed.jaxpr, closed.consts, args)


def inline_equations(closed: ClosedJaxpr, operands: Operands) -> tuple[list[JaxprEqn], list[Any]]:
    """Return a program's equations on other operands, for rules of `partial_eval_jaxpr`, which return equations.

    Args:
        closed: a program without constants, for which the enclosing program would have no binders.
        operands: variables or literals, one for each argument.

    Returns:
        The equations, with new variables, and the atoms of the outputs.

    Raises:
        ValueError: the program has constants (`close_over_consts` turns them into arguments), or the number of operands
            differs from the number of arguments.
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
