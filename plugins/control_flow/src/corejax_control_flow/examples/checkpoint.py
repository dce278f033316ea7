"""Applications of `remat2`."""

from __future__ import annotations

from typing import Any

from corejax.extend import Example
from corejax_control_flow.checkpoint import policies
from corejax_control_flow.checkpoint.checkpoint import checkpoint
from corejax_control_flow.examples._equations import example, of_type
from corejax_control_flow.markers.name import checkpoint_name


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
    plain = [example("remat2", lambda x, y, f=f: [f(x, y)], of_type(3), of_type(3)) for f in wraps]
    linear = example("remat2", lambda x, y: [checkpoint(lambda x, y: x * 2.0 + y)(x, y)], of_type(3), of_type(3))
    return [*plain, example("remat2", several, of_type(2), of_type(2)), linear]


EXAMPLES = {"remat2": remat}
