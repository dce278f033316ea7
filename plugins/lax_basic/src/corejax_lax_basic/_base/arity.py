"""How many operands a primitive takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corejax.extend import ShapedArray


def takes(name: str, count: int, *, at_least: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the abstract-eval rule of a primitive: it raises TypeError for another number of operands.

    Args:
        name: the primitive.
        count: how many operands it has.
        at_least: whether there may be more.
    """

    def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(rule)
        def counted(*avals: ShapedArray, **params: Any) -> Any:
            given = len(avals)
            if given < count or (given > count and not at_least):
                least = "at least " if at_least else ""
                raise TypeError(f"{name} takes {least}{count} operand{'' if count == 1 else 's'}, got {given}")
            return rule(*avals, **params)

        return counted

    return decorate
