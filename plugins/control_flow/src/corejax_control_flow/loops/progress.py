"""Progress bars of loops: an effect, also of compiled programs, that changes no result.

    progress : i32[] -> bool[] -> i32[]        number of finished iterations, whether another one follows

At a fixed interval of iterations and after the last one, the program calls back to the host, which draws. The result
is the first operand. The loop carries it, so that calls run in order. Under `vmap` one bar is shown for the batch,
under `grad` one for the forward pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    as_array,
    defzero,
    impl_rules,
    stage_closed,
    vmap_rules,
)
from corejax.extend.programs import register_param_type
from corejax_control_flow.loops._progress_display import display
from corejax_control_flow.programs.rewriting import appended, forwarded_operand, rearranged

COUNT = ShapedArray((), np.dtype(np.int32))
GOING = ShapedArray((), np.dtype(np.bool_))


@register_param_type
@dataclasses.dataclass(frozen=True)
class ProgressBar:
    """A description of a loop's progress bar.

    The bar is a line of text on standard error. It is drawn only on a terminal (not in a file, a pipe or a notebook),
    unless `force` is set.

    Attributes:
        label: text before the bar.
        every: number of iterations between two reports. The default is a hundredth of the loop, or 10 if its length
            is not known. Each report takes the time of a call from the program to Python.
        force: if True, draw the bar even if standard error is not a terminal.

    Raises:
        TypeError: if the label is not a string, or `every` is not an integer.
        ValueError: if `every` is less than 1.
    """

    label: str = ""
    every: int | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.label, str):
            raise TypeError(
                f"ProgressBar: the label must be a string, got {self.label!r} of type {type(self.label).__name__}"
            )
        if self.every is not None and (not isinstance(self.every, int) or isinstance(self.every, bool)):
            raise TypeError(f"ProgressBar: `every` must be a number of iterations, got {self.every!r}")
        if self.every is not None and self.every < 1:
            raise ValueError(f"ProgressBar: `every` must be at least 1, got {self.every}")

    def period(self, total: int | None) -> int:
        """Return the number of iterations between two reports of a loop of length `total`."""
        if self.every is not None:
            return self.every
        return 10 if total is None else max(total // 100, 1)


Progress = bool | str | ProgressBar


def as_progress_bar(transform: str, progress: Progress) -> ProgressBar | None:
    """Convert a loop's `progress` argument to a bar, or to None for no bar.

    Raises:
        TypeError: if `progress` is neither a boolean, a label nor a `ProgressBar`.
    """
    if progress is None or progress is False:
        return None
    if progress is True:
        return ProgressBar()
    if isinstance(progress, str):
        return ProgressBar(progress)
    if isinstance(progress, ProgressBar):
        return progress
    raise TypeError(
        f"{transform}: `progress` must be True, a label or a lax.ProgressBar(label, every=n), got {progress!r} of "
        f"type {type(progress).__name__}"
    )


# -- primitives ----------------------------------------------------------------------------------------------

progress_p = Primitive(
    "progress",
    effects=("progress",),
    doc="Report a loop's number of iterations, if a report is due. Params: bar, total.",
)
report_p = Primitive(
    "progress_report",
    effects=("progress",),
    doc="Draw a loop's progress bar; `progress` does this if a report is due. Params: bar, total.",
)


@impl_rules.register(progress_p)
def progress_impl(count: Any, going: Any, *, bar: ProgressBar, total: int | None) -> Any:
    """Draw the bar if a report is due: after each period, and at the end."""
    if not going or int(count) % bar.period(total) == 0:
        display.update(bar.label, total, int(count), last=not going, force=bar.force)
    return count


@impl_rules.register(report_p)
def report_impl(count: Any, going: Any, *, bar: ProgressBar, total: int | None) -> Any:
    """Draw the bar. Compiled programs call this on the host."""
    display.update(bar.label, total, int(count), last=not going, force=bar.force)
    return count


def _checked(count: ShapedArray, going: ShapedArray, *, bar: ProgressBar, total: int | None) -> ShapedArray:
    if count.strip_weak_type() is not COUNT or going.strip_weak_type() is not GOING:
        raise TypeError(
            f"progress: the operands must be int32[] and bool[], got {count.str_short()}, {going.str_short()}"
        )
    return COUNT


def _vmap(axis_size: int, vals: Any, dims: Any, *, primitive: Primitive, **params: Any) -> Any:
    """Show one bar for the batch, with the largest count of its elements."""
    from corejax_lax_basic import lax

    count, going = vals
    if dims[0] is not None:
        count = lax.reduce_max(count, (0,))
    if dims[1] is not None:
        going = lax.reduce_or(going, (0,))
    return primitive.bind(count, going, **params), None


for _primitive in (progress_p, report_p):
    forwarded_operand[_primitive] = 0
    abstract_eval_rules.register(_primitive, _checked)
    defzero(_primitive)
    vmap_rules.register(
        _primitive, lambda n, vals, dims, *, _p=_primitive, **params: _vmap(n, vals, dims, primitive=_p, **params)
    )


# -- loops that count ----------------------------------------------------------------------------------------


def first_count() -> Any:
    """Return the initial value of the count, int32 0."""
    return as_array(np.zeros((), np.int32))


def counted(
    body: ClosedJaxpr,
    num_consts: int,
    bar: ProgressBar,
    total: int | None,
    going: Callable[..., Any],
    extra: Sequence[ShapedArray] = (),
) -> ClosedJaxpr:
    """Return a loop's body that also counts and reports its iterations; the count is its first carry.

    Args:
        body: the body, with `num_consts` constants as first arguments.
        num_consts: number of the body's constants.
        bar: the bar to show.
        total: number of iterations, None if it is not known.
        going: function `(count, results of the body, extra constants)` that returns whether another iteration follows.
        extra: types of the extra constants of `going`, which the new body takes before its own constants.
    """
    from corejax_lax_basic import lax

    def tail(outs: Any, more: Any) -> list[Any]:
        count = lax.add(more[0], as_array(np.ones((), np.int32)))
        return [progress_p.bind(count, going(count, outs, more[1:]), bar=bar, total=total), *outs]

    counting = appended(body, tail, [COUNT, *extra])
    last = len(body.in_avals)
    order = [*range(last + 1, last + 1 + len(extra)), *range(num_consts), last, *range(num_consts, last)]
    return rearranged(counting, order, range(len(counting.out_avals)))


def report(bar: ProgressBar, total: int | None) -> ClosedJaxpr:
    """Return the program that draws, for the translation."""
    return stage_closed(lambda count, going: [report_p.bind(count, going, bar=bar, total=total)], [COUNT, GOING])
