"""The number of operands of a primitive."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corejax.extend import ShapedArray


def takes(name: str, count: int, *, at_least: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the abstract-eval rule of a primitive, so that it raises TypeError for a wrong number of operands.

    Args:
        name: the primitive.
        count: the number of operands.
        at_least: whether more operands are allowed.
    """

    def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(rule)
        def counted(*avals: ShapedArray, **params: Any) -> Any:
            received = len(avals)
            if received < count or (received > count and not at_least):
                least = "at least " if at_least else ""
                raise TypeError(f"{name} takes {least}{count} operand{'' if count == 1 else 's'}, got {received}")
            return rule(*avals, **params)

        return counted

    return decorate
