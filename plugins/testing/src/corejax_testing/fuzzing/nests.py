"""Nests: a case inside a transformation or a control-flow operation, as another case.

Each nest is a function of the operands of the case and of the transformation around it. It is staged, so that the
result is again a program. Transformations of plugins are looked up by name and never imported, so nests of plugins that
are not installed do not apply.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import close_over_consts, get_aval, host_value, stage_closed
from corejax.extend.messages import NotDifferentiableError
from corejax.extend.plugins import exported
from corejax_testing.arrays import Array, direction, is_inexact, replaced
from corejax_testing.fuzzing.case import Case
from corejax_testing.outcomes import NotApplicable

Made = tuple[Callable[..., list[Any]], list[Array]]  # a function and its operands
LENGTH = 2  # the length of loops


def lax_name(name: str) -> Callable[..., Any] | None:
    """Return a function of `corejax.lax`, or None if no plugin provides it."""
    return getattr(getattr(corejax, "lax", None), name, None)


def _exported(name: str) -> Callable[..., Any] | None:
    found = exported(name)
    return found if callable(found) else None


def rows(case: Case, which: Sequence[int]) -> list[list[Array]]:
    """Return the operands of the two elements of a batch; the second has some operands in reverse order.

    Reversed operands keep their ranges. If an example does not admit them, both elements are the same.
    """
    steps = [list(case.values), list(case.values)]
    steps[1] = [np.ascontiguousarray(x[..., ::-1]) if i in which and x.ndim else x for i, x in enumerate(case.values)]
    try:
        case.at(steps[1]).outs()
    except NotApplicable:
        steps[1] = list(case.values)
    return steps


def batch_axes(case: Case) -> list[int | None]:
    """Return the batch axis of each operand of a case, or None; at least one operand is batched."""
    if not case.salt:
        return [0 for _ in case.values]
    rng = case.rng(zlib.crc32(b"axes"))
    axes = [None if rng.random() < 0.25 else int(rng.integers(0, x.ndim + 1)) for x in case.values]
    if all(axis is None for axis in axes):
        return [0 for _ in case.values]
    return axes


def batched_values(case: Case, axes: Sequence[int | None]) -> list[Array]:
    """Return the operands for vmap of a case."""
    steps = rows(case, [i for i, axis in enumerate(axes) if axis is not None])
    columns = zip(*steps, strict=True)
    return [x[0] if axis is None else np.stack(x, axis) for x, axis in zip(columns, axes, strict=True)]


def tangents(case: Case) -> list[Array]:
    """Return tangents for the operands that have derivatives."""
    rng = case.rng(zlib.crc32(b"tangents"))
    return [direction(rng, case.values[i]) for i in case.smooth]


def cotangents(case: Case) -> list[Array]:
    """Return cotangents for the results that have derivatives."""
    rng = case.rng(zlib.crc32(b"cotangents"))
    avals = case.program.out_avals
    return [direction(rng, np.zeros(avals[k].shape, avals[k].dtype)) for k in case.smooth_outs]


def moving(case: Case, values: Sequence[Any]) -> Callable[..., list[Any]]:
    """Return the case as a function from operands to results that have derivatives; other operands are constant."""

    def fun(*xs: Any) -> list[Any]:
        outs = case(*replaced(values, case.smooth, xs))
        return [outs[k] for k in case.smooth_outs]

    return fun


def needs_derivative(case: Case) -> None:
    """Require an operand and a result that have derivatives."""
    if not case.smooth or not case.smooth_outs:
        raise NotApplicable("no operand or no result has a derivative")


def _jit(case: Case) -> Made:
    jit = _exported("jit")
    if jit is None:
        raise NotApplicable("nothing compiles")
    return jit(lambda *xs: case(*xs)), list(case.values)


def _vmap(case: Case) -> Made:
    if not case.values:
        raise NotApplicable("no operands")
    axes = batch_axes(case)
    return corejax.vmap(lambda *xs: case(*xs), tuple(axes)), batched_values(case, axes)


def _derivative(directions: Callable[[Case], list[Array]], how: Callable[..., list[Any]]) -> Callable[[Case], Made]:
    """Return a nest that applies `how(function, operands, directions)` to the differentiable operands and results."""

    def nest(case: Case) -> Made:
        needs_derivative(case)
        count = len(case.values)

        def fun(*args: Any) -> list[Any]:
            values = args[:count]
            return how(moving(case, values), tuple(values[i] for i in case.smooth), args[count:])

        return fun, [*case.values, *directions(case)]

    return nest


_jvp = _derivative(tangents, lambda fun, xs, ts: [y for part in corejax.jvp(fun, xs, ts) for y in part])
_linearize = _derivative(tangents, lambda fun, xs, ts: list(corejax.linearize(fun, *xs)[1](*ts)))
_vjp = _derivative(cotangents, lambda fun, xs, cts: list(corejax.vjp(fun, *xs)[1](list(cts))))


def _other(outs: Sequence[Any]) -> list[Any]:
    """Return other values of the same types, for the results of another branch."""
    return [y * get_aval(y).dtype.type(0.5) if is_inexact(get_aval(y).dtype) else y for y in outs]


def _cond(case: Case) -> Made:
    cond = lax_name("cond")
    if cond is None:
        raise NotApplicable("no cond")
    choice = np.asarray(bool(case.rng(1).integers(2)))
    return (lambda p, *xs: list(cond(p, lambda *a: case(*a), lambda *a: _other(case(*a)), *xs))), [choice, *case.values]


def _switch(case: Case) -> Made:
    switch = lax_name("switch")
    if switch is None:
        raise NotApplicable("no switch")
    branches = [lambda *a: _other(case(*a)), lambda *a: case(*a), lambda *a: _other(_other(case(*a)))]
    choice = np.asarray(case.rng(2).integers(3), np.int32)
    return (lambda k, *xs: list(switch(k, branches, *xs))), [choice, *case.values]


def _carried(case: Case) -> tuple[int, int] | None:
    """Return the positions of an operand and a result of the same type, which a loop can carry, or None."""
    for k, out in reversed(list(enumerate(case.program.out_avals))):
        for i, aval in enumerate(case.program.in_avals):
            if aval is out:
                return i, k
    return None


def _scan(case: Case) -> Made:
    scan = lax_name("scan")
    if scan is None:
        raise NotApplicable("no scan")
    if not case.values:
        raise NotApplicable("no operands")
    rng, carried = case.rng(3), _carried(case)
    over = [i for i in range(len(case.values)) if carried is None or i != carried[0]]
    over = [i for i in over if rng.random() < 0.6] or over[:1]
    reverse = bool(rng.integers(2))

    def fun(*args: Any) -> list[Any]:
        def body(carry: Any, xs: Any) -> Any:
            every = replaced(args, over, xs)
            if carried is not None:
                every[carried[0]] = carry
            outs = case(*every)
            return (carry if carried is None else outs[carried[1]]), outs

        init = () if carried is None else args[carried[0]]
        last, ys = scan(body, init, tuple(args[i] for i in over), length=LENGTH, reverse=reverse)
        return [*([] if carried is None else [last]), *ys]

    columns = zip(*rows(case, over), strict=True)
    return fun, [np.stack(x) if i in over else x[0] for i, x in enumerate(columns)]


def _while(case: Case) -> Made:
    loop, lt = lax_name("while_loop"), lax_name("lt")
    carried = _carried(case)
    if loop is None or lt is None or carried is None:
        raise NotApplicable("no while_loop, or nothing to carry")

    def fun(count: Any, *args: Any) -> list[Any]:
        def body(state: Any) -> Any:
            outs = case(*replaced(args, [carried[0]], [state[1]]))
            return state[0] + np.int32(1), outs[carried[1]]

        return [loop(lambda state: lt(state[0], count), body, (np.int32(0), args[carried[0]]))[1]]

    return fun, [np.asarray(LENGTH, np.int32), *case.values]


def _checkpoint(case: Case) -> Made:
    checkpoint = _exported("checkpoint") or _exported("remat")
    if checkpoint is None:
        raise NotApplicable("no checkpoint")
    return checkpoint(lambda *xs: case(*xs)), list(case.values)


def _custom_jvp(case: Case) -> Made:
    """Wrap the case in `custom_jvp` with the derivative that the function has anyway."""
    custom_jvp = _exported("custom_jvp")
    if custom_jvp is None or not case.values or len(case.smooth) != len(case.values):
        raise NotApplicable("no custom_jvp, or operands without derivatives")
    if len(case.smooth_outs) != len(case.program.out_avals):
        raise NotApplicable("results without derivatives")
    fun = custom_jvp(lambda *xs: tuple(case(*xs)))
    fun.defjvp(lambda xs, ts: corejax.jvp(lambda *ys: tuple(case(*ys)), xs, ts))
    return (lambda *xs: list(fun(*xs))), list(case.values)


NESTS: dict[str, Callable[[Case], Made]] = {
    "jit": _jit,
    "vmap": _vmap,
    "jvp": _jvp,
    "vjp": _vjp,
    "linearize": _linearize,
    "cond": _cond,
    "switch": _switch,
    "scan": _scan,
    "while": _while,
    "checkpoint": _checkpoint,
    "custom_jvp": _custom_jvp,
}


def nest(case: Case, name: str) -> Case:
    """Return the case wrapped in a nest; the result is cached.

    Raises:
        NotApplicable: the nest does not apply, needs a plugin that is not installed, or a rule that is missing.
        Exception: any error of the transformation.
    """
    made = case.derived.get(name)
    if made is None:
        fun, values = NESTS[name](case)
        with undefined_is_not_applicable():
            program = stage_closed(lambda *xs: list(fun(*xs)), [get_aval(x) for x in values])
        values = [*(np.asarray(host_value(c)) for c in program.consts), *values]
        made = case.derived[name] = Case(close_over_consts(program.jaxpr), tuple(values), case.salt)
    return made


# The words in which functions with one mode of differentiation (`while`, custom rules) refuse the other mode.
_ONE_MODE = re.compile(r"(reverse|forward)[- ]mode")


class undefined_is_not_applicable:
    """Turn errors about missing rules and refused derivatives into `NotApplicable`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        refused = isinstance(error, ValueError | TypeError) and _ONE_MODE.search(str(error)) is not None
        if refused or isinstance(error, NotImplementedError | NotDifferentiableError):
            raise NotApplicable(str(error).splitlines()[0]) from error
