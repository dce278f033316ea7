"""StableHLO of progress bars: calls to the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, xla_translations
from corejax_control_flow.loops.progress import ProgressBar, progress_p, report, report_p


@xla_translations.register(progress_p)
def progress_translation(
    ctx: Any, in_avals: Any, in_vals: Sequence[Any], *, bar: ProgressBar, total: int | None
) -> Any:
    """A call to the host, made only when it is time to draw."""
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
