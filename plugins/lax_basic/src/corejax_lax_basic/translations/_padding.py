"""The attribute `padding` of windows."""

from __future__ import annotations

from corejax_lax_basic.windows.geometry import Pads


def padding_text(padding: Pads) -> str:
    """Write pairs of low and high padding, one for each dimension, as an attribute."""
    pairs = ", ".join(f"[{low}, {high}]" for low, high in padding)
    return f"dense<{f'[{pairs}]' if pairs else ''}> : tensor<{len(padding)}x2xi64>"
