"""The structural operation that the plugin provides (`corejax.structural`); imported with the plugin, so light."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def loop(f: Callable[..., Sequence[Any]], axis_size: int, xs: Sequence[Any]) -> list[Any]:
    """`f` of the elements of `xs` along their first axis, as a `scan` without a carry; its results stacked."""
    from corejax_control_flow.loops.scan import scan

    _, outs = scan(lambda carry, elements: (carry, list(f(*elements))), (), list(xs), length=axis_size)
    return list(outs)
