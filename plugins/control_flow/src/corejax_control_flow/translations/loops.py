"""Translations of loops: `scan` to a `while` over a counter, `while` to `while`, progress bars to host callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ClosedJaxpr, ShapedArray, split_list, xla_translations
from corejax.extend.types import SymbolicDim
from corejax_control_flow.loops.progress import ProgressBar, progress_p, report, report_p
from corejax_control_flow.loops.scan_rules import scan_p
from corejax_control_flow.loops.while_rules import while_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(scan_p)
def scan_translation(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    linear: Any,
    num_carry: int,
    num_consts: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    """Translate to a `while` over a counter, the carries and the stacked results.

    One iteration has `unroll` steps; the remaining steps follow the loop. The regions refer to constants and scanned
    arrays from outside, so that the loop does not carry them.
    """
    consts, carry, xs = split_list(in_vals, [num_consts, num_carry])
    if isinstance(length, SymbolicDim):
        return _scan_of_symbolic_length(ctx, _Loop(jaxpr, consts, xs, num_carry, length, reverse), carry)
    ys = [ctx.full(a, 0) for a in _stacked(length, jaxpr.out_avals[num_carry:])]
    loop = _Loop(jaxpr, consts, xs, num_carry, length, reverse)
    counter = np.dtype(np.int32 if length < 2**31 else np.int64)
    iterations = length // unroll
    in_loop = iterations * unroll if iterations > 1 else 0
    state = [*carry, *ys]
    if in_loop:
        state = _while(ctx, loop, state, counter, in_loop, unroll)
    for step in range(in_loop, length):
        position = length - 1 - step if reverse else step
        state = loop.step(ctx, ctx.constant(np.asarray(position, counter)), state)
    return state


def _scan_of_symbolic_length(ctx: TranslationContext, loop: _Loop, carry: Sequence[Any]) -> list[Any]:
    """Translate a scan of symbolic length.

    If the length may be 0, the loop's arrays are padded by one element: StableHLO rejects a slice of one element of an
    empty array, even if no iteration would run it.
    """
    length, size = loop.length, loop.length if _is_positive(loop.length) else loop.length + 1
    y_avals = loop.jaxpr.out_avals[loop.num_carry :]
    if size != length:
        loop.xs = [_resized(ctx, x, x.aval.update(shape=(size, *x.aval.shape[1:])), _padded) for x in loop.xs]
    ys = [ctx.full(a, 0) for a in _stacked(size, y_avals)]
    state = _while(ctx, loop, [*carry, *ys], np.dtype(np.int32), length, 1)
    if size == length:
        return state
    last, ys = split_list(state, [loop.num_carry])
    return [*last, *(_resized(ctx, y, aval, _cut) for y, aval in zip(ys, _stacked(length, y_avals), strict=True))]


def _stacked(length: Any, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    return [a.update(shape=(length, *a.shape)).refined(None) for a in avals]


def _resized(ctx: TranslationContext, x: Any, aval: ShapedArray, resize: Callable[..., Any]) -> Any:
    """Return a value with another size of its first axis, from `resize` of its parts."""
    parts = zip(ctx.parts([x]), aval.part_axes(0), aval.parts(), strict=True)
    return ctx.packed(aval, [resize(ctx, *part) for part in parts])


def _padded(ctx: TranslationContext, x: Any, axis: int, aval: ShapedArray) -> Any:
    return ctx.pad(x, [(0, int(i == axis), 0) for i in range(aval.ndim)])


def _cut(ctx: TranslationContext, x: Any, axis: int, aval: ShapedArray) -> Any:
    return ctx.slice(x, [0] * aval.ndim, aval.shape)


def _is_positive(length: Any) -> bool:
    try:
        return bool(length >= 1)
    except Exception:  # the comparison depends on the value of the symbolic size
        return False


def _while(ctx: TranslationContext, loop: _Loop, state: list[Any], counter: Any, stop: int, unroll: int) -> list[Any]:
    scalar = ShapedArray((), counter)
    avals = [scalar, *(x.aval for x in state)]

    def unfinished(inner: Any, i: Any, *_: Any) -> Any:
        return inner.compare("LT", i, _number(inner, stop, counter))

    def body(inner: Any, i: Any, *values: Any) -> list[Any]:
        one = inner.constant(np.asarray(1, counter))
        state = list(values)
        for _ in range(unroll):
            position = i
            if loop.reverse:
                last = _number(inner, loop.length - 1, counter)
                position = inner.op("subtract", last, i, out=scalar)
            state = loop.step(inner, position, state)
            i = inner.op("add", i, one, out=scalar)
        return [i, *state]

    start = ctx.constant(np.asarray(0, counter))
    regions = [ctx.region(avals, unfinished), ctx.region(avals, body)]
    outs: list[Any] = ctx.op("while", start, *state, out=avals, regions=regions)[1:]
    return outs


def _number(ctx: TranslationContext, n: Any, dtype: np.dtype[Any]) -> Any:
    """Return a constant; a symbolic size stands in the program as text until its value is known."""
    if not isinstance(n, SymbolicDim):
        return ctx.constant(np.asarray(n, dtype))
    return ctx.op("constant", out=ShapedArray((), dtype), attrs=f"value = dense<{n}> : tensor<i{8 * dtype.itemsize}>")


class _Loop:
    """The parts of a scan that do not change between iterations."""

    def __init__(
        self, jaxpr: ClosedJaxpr, consts: list[Any], xs: list[Any], num_carry: int, length: int, reverse: bool
    ) -> None:
        self.jaxpr = jaxpr
        self.consts = consts
        self.xs = xs
        self.num_carry = num_carry
        self.length = length
        self.reverse = reverse

    def step(self, ctx: TranslationContext, position: Any, state: Sequence[Any]) -> list[Any]:
        """Run the body at one position of the scanned arrays."""
        carry, ys = split_list(state, [self.num_carry])
        zero = ctx.constant(np.zeros((), position.aval.dtype))
        types = self.jaxpr.in_avals[len(self.consts) + self.num_carry :]
        elements = [_element(ctx, x, aval, position, zero) for x, aval in zip(self.xs, types, strict=True)]
        outs = ctx.inline(self.jaxpr, [*self.consts, *carry, *elements])
        new, results = split_list(outs, [self.num_carry])
        return [*new, *(_store(ctx, y, r, position, zero) for y, r in zip(ys, results, strict=True))]


def _element(ctx: TranslationContext, x: Any, aval: ShapedArray, position: Any, zero: Any) -> Any:
    """Slice the arrays that store `x` along the axes that store its first axis; `aval` is the element's type."""
    elements = []
    for part, axis, element in zip(ctx.parts([x]), x.aval.part_axes(0), aval.parts(), strict=True):
        shape = (*part.aval.shape[:axis], 1, *part.aval.shape[axis + 1 :])
        start = [position if i == axis else zero for i in range(len(shape))]
        attrs, out = f"slice_sizes = {ctx.i64(shape)}", ShapedArray(shape, element.dtype)
        elements.append(ctx.reshape(ctx.op("dynamic_slice", part, *start, out=out, attrs=attrs), element.shape))
    return ctx.packed(aval, elements)


def _store(ctx: TranslationContext, stack: Any, element: Any, position: Any, zero: Any) -> Any:
    """Write the arrays that store an element into those of `stack`, the inverse of `_element`."""
    stacks = []
    for part, axis, new in zip(ctx.parts([stack]), stack.aval.part_axes(0), ctx.parts([element]), strict=True):
        shape = (*part.aval.shape[:axis], 1, *part.aval.shape[axis + 1 :])
        start = [position if i == axis else zero for i in range(len(shape))]
        stacks.append(ctx.op("dynamic_update_slice", part, ctx.reshape(new, shape), *start, out=part.aval))
    return ctx.packed(stack.aval, stacks)


@xla_translations.register(while_p)
def while_translation(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Sequence[Any],
    *,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> list[Any]:
    """Translate to `while`; the regions refer to the constants from outside."""
    cond_consts, body_consts, carry = split_list(in_vals, [cond_nconsts, body_nconsts])
    if any(effect.startswith("ordered:") for effect in cond_jaxpr.effects):
        return _while_with_carried_condition(ctx, carry, (cond_jaxpr, cond_consts), (body_jaxpr, body_consts))
    avals = [x.aval for x in carry]
    regions = [
        ctx.region(avals, lambda inner, *values: inner.inline(cond_jaxpr, [*cond_consts, *values])),
        ctx.region(avals, lambda inner, *values: inner.inline(body_jaxpr, [*body_consts, *values])),
    ]
    outs: list[Any] = ctx.op("while", *carry, out=avals, regions=regions)
    return outs


def _while_with_carried_condition(ctx: TranslationContext, carry: list[Any], cond: Any, body: Any) -> list[Any]:
    """Translate a loop with ordered effects in its condition.

    Effects in the condition's region have no order, so the body evaluates the condition and the loop carries its value.
    """

    def decided(inner: Any, values: Sequence[Any]) -> list[Any]:
        program, consts = cond
        return [*inner.inline(program, [*consts, *values]), *values]

    def step(inner: Any, going: Any, *values: Any) -> list[Any]:
        program, consts = body
        return decided(inner, inner.inline(program, [*consts, *values]))

    state = decided(ctx, carry)
    avals = [x.aval for x in state]
    regions = [ctx.region(avals, lambda inner, going, *_: going), ctx.region(avals, step)]
    outs: list[Any] = ctx.op("while", *state, out=avals, regions=regions)[1:]
    return outs


@xla_translations.register(progress_p)
def progress_translation(
    ctx: TranslationContext, in_avals: Any, in_vals: Sequence[Any], *, bar: ProgressBar, total: int | None
) -> Any:
    """Call the host, inside a `case` that runs only if a report is due."""
    count, going = in_vals
    flag = ShapedArray((), np.dtype(np.bool_))
    rest = ctx.op("remainder", count, ctx.constant(np.asarray(bar.period(total), np.int32)), out=count.aval)
    attrs = "comparison_direction = #stablehlo<comparison_direction EQ>"
    due = ctx.op("compare", rest, ctx.constant(np.zeros((), np.int32)), out=flag, attrs=attrs)
    due = ctx.op("or", due, ctx.op("not", going, out=flag), out=flag)
    program = report(bar, total)
    regions = [
        ctx.region((), lambda inner: [count]),
        ctx.region((), lambda inner: inner.inline(program, in_vals)),
    ]
    return ctx.op("case", ctx.convert(due, np.dtype(np.int32)), out=count.aval, regions=regions)


xla_translations.register(report_p, by="host callback")  # calls the primitive's impl
