"""Progress bars of loops: an effect that compiled programs have too, and that changes no result.

    progress : i32[] -> bool[] -> i32[]        the number of iterations that are done, and whether there is one more

Every so many iterations, and at the last, the program calls back to the host, which draws. The result is the first
operand. The loop carries it, so each call waits for the one before. Under `vmap` there is one bar. Under `grad` it
shows the forward pass.
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
    impl_rules,
    stage_closed,
    vmap_rules,
)
from corejax.extend.programs import register_param_type
from corejax_control_flow.loops._progress_display import display
from corejax_control_flow.programs.rewriting import appended, passes_on, rearranged

COUNT = ShapedArray((), np.dtype(np.int32))
GOING = ShapedArray((), np.dtype(np.bool_))


@register_param_type
@dataclasses.dataclass(frozen=True)
class ProgressBar:
    """How to show the progress of a loop.

    The bar is a line of text on standard error. It is not drawn where that is no terminal (a file, a pipe, a
    notebook), unless `force` is set.

    Attributes:
        label: what stands before it.
        every: number of iterations between two reports; by default a hundredth of the loop, or 10 where its length
            is not known. Each report takes the time of a call from the program to Python.
        force: draw it even where standard error is not a terminal.

    Raises:
        TypeError: the label is not a string, or `every` is not an integer.
        ValueError: `every` is less than 1.
    """

    label: str = ""
    every: int | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.label, str):
            raise TypeError(
                f"ProgressBar: the label is a string, got {self.label!r} of type {type(self.label).__name__}"
            )
        if self.every is not None and (not isinstance(self.every, int) or isinstance(self.every, bool)):
            raise TypeError(f"ProgressBar: `every` is a number of iterations, got {self.every!r}")
        if self.every is not None and self.every < 1:
            raise ValueError(f"ProgressBar: `every` is at least 1, got {self.every}")

    def period(self, total: int | None) -> int:
        """Number of iterations between two reports of a loop of this length."""
        if self.every is not None:
            return self.every
        return 10 if total is None else max(total // 100, 1)


Progress = bool | str | ProgressBar


def as_progress_bar(transform: str, given: Progress) -> ProgressBar | None:
    """The bar that a loop's `progress` argument asks for, None for none.

    Raises:
        TypeError: it is neither a boolean, a label nor a `ProgressBar`.
    """
    if given is None or given is False:
        return None
    if given is True:
        return ProgressBar()
    if isinstance(given, str):
        return ProgressBar(given)
    if isinstance(given, ProgressBar):
        return given
    raise TypeError(
        f"{transform}: `progress` is True, a label or a lax.ProgressBar(label, every=n), got {given!r} of type "
        f"{type(given).__name__}"
    )


# -- primitives ----------------------------------------------------------------------------------------------

progress_p = Primitive(
    "progress",
    effects=("progress",),
    doc="Report a loop's number of iterations, if it is time to. Params: bar, total.",
)
report_p = Primitive(
    "progress_report",
    effects=("progress",),
    doc="Draw a loop's progress bar; what `progress` does when it is time to. Params: bar, total.",
)


@impl_rules.register(progress_p)
def progress_impl(count: Any, going: Any, *, bar: ProgressBar, total: int | None) -> Any:
    """Draws every so many iterations, and at the end."""
    if not going or int(count) % bar.period(total) == 0:
        display.update(bar.label, total, int(count), last=not going, force=bar.force)
    return count


@impl_rules.register(report_p)
def report_impl(count: Any, going: Any, *, bar: ProgressBar, total: int | None) -> Any:
    """Draws; compiled programs call it back."""
    display.update(bar.label, total, int(count), last=not going, force=bar.force)
    return count


def _checked(count: ShapedArray, going: ShapedArray, *, bar: ProgressBar, total: int | None) -> ShapedArray:
    if count.strip_weak_type() is not COUNT or going.strip_weak_type() is not GOING:
        raise TypeError(f"progress: the operands are int32[] and bool[], got {count.str_short()}, {going.str_short()}")
    return COUNT


def _of_batch(axis_size: int, vals: Any, dims: Any, *, primitive: Primitive, **params: Any) -> Any:
    """One bar for the batch. It shows the element that is furthest."""
    from corejax_lax_basic import lax

    count, going = vals
    if dims[0] is not None:
        count = lax.reduce_max(count, (0,))
    if dims[1] is not None:
        going = lax.reduce_or(going, (0,))
    return primitive.bind(count, going, **params), None


for _primitive in (progress_p, report_p):
    passes_on[_primitive] = 0
    abstract_eval_rules.register(_primitive, _checked)
    vmap_rules.register(
        _primitive, lambda n, vals, dims, *, _p=_primitive, **params: _of_batch(n, vals, dims, primitive=_p, **params)
    )


# -- loops that count ----------------------------------------------------------------------------------------


def first_count() -> Any:
    """The number of iterations before the first."""
    return as_array(np.zeros((), np.int32))


def counted(
    body: ClosedJaxpr,
    num_consts: int,
    bar: ProgressBar,
    total: int | None,
    going: Callable[..., Any],
    extra: Sequence[ShapedArray] = (),
) -> ClosedJaxpr:
    """A loop's body that counts and reports its iterations; the count is its first carry.

    Args:
        body: the body, whose first `num_consts` arguments are constants.
        num_consts: their number.
        bar: how to show the progress.
        total: number of iterations, None if it is not known.
        going: whether there is one more iteration, from the number of those done, the body's results and the extra
            constants.
        extra: types of constants of `going`, which the new body takes before its own.
    """
    from corejax_lax_basic import lax

    def tail(outs: Any, more: Any) -> list[Any]:
        count = lax.add(more[0], as_array(np.ones((), np.int32)))
        return [progress_p.bind(count, going(count, outs, more[1:]), bar=bar, total=total), *outs]

    whole = appended(body, tail, [COUNT, *extra])
    last = len(body.in_avals)
    order = [*range(last + 1, last + 1 + len(extra)), *range(num_consts), last, *range(num_consts, last)]
    return rearranged(whole, order, range(len(whole.out_avals)))


def report(bar: ProgressBar, total: int | None) -> ClosedJaxpr:
    """The program that draws, for the translation."""
    return stage_closed(lambda count, going: [report_p.bind(count, going, bar=bar, total=total)], [COUNT, GOING])
