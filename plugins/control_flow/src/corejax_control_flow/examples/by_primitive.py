"""Which function makes the applications of which primitive."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from corejax.extend import Example
from corejax_control_flow.examples import branches, checkpoint, custom, loops, markers, solvers

EXAMPLES: Mapping[str, Callable[[], list[Example]]] = {
    **branches.EXAMPLES,
    **checkpoint.EXAMPLES,
    **custom.EXAMPLES,
    **loops.EXAMPLES,
    **markers.EXAMPLES,
    **solvers.EXAMPLES,
}
