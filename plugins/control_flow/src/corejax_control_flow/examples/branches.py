"""Applications of `cond`."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example
from corejax_control_flow.branches.cond import cond, switch
from corejax_control_flow.examples._equations import I32, example, of_type


def conditionals() -> list[Example]:
    """Two branches and three; an operand that both branches pass on."""
    from corejax_lax_basic import lax

    def choose(index: Any, x: Any, y: Any) -> list[Any]:
        return [cond(lax.gt(index, 0), lambda a, b: a * b, lambda a, b: lax.sin(a) + b, x, y)]

    def pass_on(index: Any, x: Any, y: Any) -> list[Any]:
        return list(cond(lax.gt(index, 0), lambda a, b: (a, a * b), lambda a, b: (a, b), x, y))

    def one_of_three(index: Any, x: Any, y: Any) -> list[Any]:
        return list(
            switch(index, [lambda a, b: (a * b, b), lambda a, b: (lax.sin(a), a), lambda a, b: (b, a * a)], x, y)
        )

    index = of_type(dtype=I32)
    return [
        *(
            example("cond", f, index, of_type(3), of_type(3), first=(np.asarray(k, I32),))
            for f in (choose, pass_on)
            for k in (0, 1)
        ),
        example("cond", one_of_three, index, of_type(2), of_type(2), low=(0, -2, -2), high=(2, 2, 2)),
    ]


def taken() -> list[Example]:
    """Numbers, and rows, of elements that all take the branch: cotangents of others are 0, which no identity's are."""
    return [
        Example(
            [of_type(3, *row), np.ones(3, bool)],
            reference=lambda x, taken: x,
            skip={"transpose": "cotangents of elements that do not take the branch are 0, by definition"},
        )
        for row in ((), (2,))
    ]


EXAMPLES = {"cond": conditionals, "if_taken": taken}
