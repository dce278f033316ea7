"""Applications of `name`, `optimization_barrier` and `dce_sink`."""

from __future__ import annotations

from corejax.extend import Example
from corejax_control_flow.examples._equations import of_type


def name() -> list[Example]:
    """A vector, a scalar."""
    return [Example([of_type(*shape)], {"name": "activation"}, reference=lambda x, name: x) for shape in ((3,), ())]


def barrier() -> list[Example]:
    """One operand, two of different shapes."""
    return [
        Example(operands, {}, reference=lambda *xs: list(xs))
        for operands in ([of_type(3)], [of_type(2, 2), of_type()], [of_type(0), of_type(2)])
    ]


def sink() -> list[Example]:
    """A vector that the compiler may drop, a scalar that it may not."""
    return [Example([of_type(*shape)], {"prevent_mlir_dce": kept}) for shape, kept in (((3,), False), ((), True))]


EXAMPLES = {"dce_sink": sink, "name": name, "optimization_barrier": barrier}
