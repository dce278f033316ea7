"""Applications of `scan`, `while` and progress bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example
from corejax_control_flow.examples._equations import I32, example, of_type
from corejax_control_flow.loops.progress import ProgressBar
from corejax_control_flow.loops.scan import scan
from corejax_control_flow.loops.while_loop import while_loop

_REVERSE = "a loop of unknown length is not differentiated in reverse"
_FORWARD = {"skip": dict.fromkeys(("second_order", "transpose", "vjp", "pairs", "triples"), _REVERSE)}


def scans() -> list[Example]:
    """A nonlinear body, a constant and the other direction, a linear body that is unrolled."""
    from corejax_lax_basic import lax

    def products(carry: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (c * lax.sin(x) + c, c * x), carry, xs))

    def recurrence(carry: Any, w: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (lax.sin(c * w) + x, c * c), carry, xs, reverse=True))

    def sums(carry: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (c + x, c), carry, xs, unroll=2))

    return [
        example("scan", products, of_type(), of_type(4)),
        example("scan", recurrence, of_type(2), of_type(2), of_type(4, 2)),
        example("scan", sums, of_type(2), of_type(3, 2)),
    ]


def while_loops() -> list[Example]:
    """Carries that grow, that change places and that are added to; a condition on a constant."""
    from corejax_lax_basic import lax

    def counted(n: Any, x: Any, w: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 3), lambda c: (lax.add(c[0], 1), lax.sin(c[1] * w)), (n, x)))

    def grows(x: Any, limit: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], limit + 3.0), lambda c: (c[0] + 2.0, c[1] * c[0]), (x, x)))

    def moves_on(n: Any, x: Any, y: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 2), lambda c: (c[0] + 1, c[2], c[1] * c[2]), (n, x, y)))

    def adds(n: Any, x: Any, y: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 3), lambda c: (c[0] + 1, c[1] + 1.5, c[2]), (n, x, y)))

    number = of_type(dtype=I32)
    return [
        example("while", counted, number, of_type(3), of_type(3), low=0, high=3, **_FORWARD),
        example("while", grows, of_type(), of_type(), low=0.5, high=1.0, **_FORWARD),
        # Tangents pass through `adds` unchanged, so it is differentiated in reverse mode too.
        example("while", adds, number, of_type(3), of_type(2), low=0, high=3),
        example("while", moves_on, number, of_type(2), of_type(2), low=0, high=2, **_FORWARD),
    ]


def reports() -> list[Example]:
    """Of a loop whose length is known, and of one whose length is not."""
    operands = (np.asarray(7, I32), np.asarray(True))
    skip = {"indices": "a batch has one bar, which shows the element that is furthest"}
    return [Example(operands, {"bar": ProgressBar(every=3), "total": total}, skip=skip) for total in (10, None)]


EXAMPLES = {"scan": scans, "while": while_loops, "progress": reports, "progress_report": reports}
