"""Applications of `custom_linear_solve`."""

from __future__ import annotations

from typing import Any

from corejax.extend import Example
from corejax_control_flow.examples._equations import example, of_type
from corejax_control_flow.solvers.custom_linear_solve import custom_linear_solve


def linear_solves() -> list[Example]:
    """Of `custom_linear_solve`, with the coefficients in the programs: as operands they would belong together."""
    from corejax_lax_basic import lax

    def symmetric(b: Any) -> list[Any]:
        def matvec(x: Any) -> Any:
            return x * 2.0 + lax.rev(x, (0,)) * 0.5

        return [custom_linear_solve(matvec, b, lambda mv, b: (b * 2.0 - lax.rev(b, (0,)) * 0.5) / 3.75, symmetric=True)]

    def first_in_all(b: Any) -> list[Any]:
        def solve(matvec: Any, b: Any) -> Any:
            return (b - b[0] / 3.0) / 2.0

        def transpose_solve(vecmat: Any, b: Any) -> Any:
            return lax.concatenate([(b[:1] - b[1:].sum() / 2.0) / 3.0, b[1:] / 2.0], 0)

        return [custom_linear_solve(lambda x: x * 2.0 + x[0], b, solve, transpose_solve)]

    return [example("custom_linear_solve", fun, of_type(3)) for fun in (symmetric, first_in_all)]


EXAMPLES = {"custom_linear_solve": linear_solves}
