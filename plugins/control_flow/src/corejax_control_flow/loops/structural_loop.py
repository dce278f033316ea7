"""`loop`, which the kernel's `vmap` uses for primitives without a vmap rule (see `corejax.core.structural`).

The plugin provides it when it is loaded, so `scan` is imported only when the loop is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def loop(f: Callable[..., Sequence[Any]], axis_size: int, xs: Sequence[Any]) -> list[Any]:
    """The stacked results of `f` on the elements of `xs` along their first axis: a `scan` without a carry."""
    from corejax_control_flow.loops.scan import scan

    _, outs = scan(lambda carry, elements: (carry, list(f(*elements))), (), list(xs), length=axis_size)
    return list(outs)
