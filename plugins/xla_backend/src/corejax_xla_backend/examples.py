"""Applications of `xla_call`, for whoever checks its rules (`corejax verify xla_backend`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed
from corejax_xla_backend.api import jit


def examples_of(primitive: str) -> list[Example]:
    """Applications of one primitive; none for a name that is not of this plugin."""
    if primitive != "xla_call":
        return []
    x = ShapedArray((3,), np.dtype(np.float32))

    def product(a: Any, b: Any) -> list[Any]:
        return list(jit(lambda a, b: (a * b * b, b))(a, b))

    def nested(a: Any, b: Any) -> list[Any]:
        return [jit(lambda a, b: jit(lambda c: c * c)(a) + b)(a, b)]

    equations = [stage_closed(fun, [x, x]).jaxpr.eqns[-1] for fun in (product, nested)]
    return [Example(tuple(atom.aval for atom in eqn.invars), eqn.params) for eqn in equations]
