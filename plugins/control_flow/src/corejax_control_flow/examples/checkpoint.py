"""Applications of `remat2`, `name` and `optimization_barrier`, for whoever checks their rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed
from corejax_control_flow.checkpoint import policies
from corejax_control_flow.checkpoint.checkpoint import checkpoint
from corejax_control_flow.markers.name import checkpoint_name

F32 = np.dtype(np.float32)


def _x(*shape: int) -> ShapedArray:
    return ShapedArray(shape, F32)


def _traced(fun: Callable[..., list[Any]], *avals: ShapedArray) -> Example:
    eqn = stage_closed(fun, avals).jaxpr.eqns[-1]
    return Example([atom.aval for atom in eqn.invars], eqn.params)


def remat() -> list[Example]:
    """Without a policy, with a name, with everything saved, with an output that is an argument; a linear one."""
    from corejax_lax_basic import lax

    def body(x: Any, y: Any) -> Any:
        return lax.sin(checkpoint_name(lax.sin(x) * y, "product")) * x

    def several(x: Any, y: Any) -> list[Any]:
        return list(checkpoint(lambda x, y: (x, body(x, y), lax.cos(y)))(x, y))

    wraps = (
        checkpoint(body),
        checkpoint(body, policy=policies.save_only_these_names("product")),
        checkpoint(body, policy=policies.everything_saveable, prevent_cse=False),
    )
    plain = [_traced(lambda x, y, f=f: [f(x, y)], _x(3), _x(3)) for f in wraps]
    linear = _traced(lambda x, y: [checkpoint(lambda x, y: x * 2.0 + y)(x, y)], _x(3), _x(3))
    return [*plain, _traced(several, _x(2), _x(2)), linear]


def name() -> list[Example]:
    """A vector, a scalar."""
    return [Example([_x(*shape)], {"name": "activation"}, reference=lambda x, name: x) for shape in ((3,), ())]


def barrier() -> list[Example]:
    """One operand, two of different shapes."""
    return [
        Example(operands, {}, reference=lambda *xs: list(xs))
        for operands in ([_x(3)], [_x(2, 2), _x()], [_x(0), _x(2)])
    ]
