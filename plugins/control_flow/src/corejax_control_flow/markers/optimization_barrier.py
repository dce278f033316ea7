"""`optimization_barrier`: the identity on several operands, across which the compiler moves no operations.

optimization_barrier : [a] -> [a]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, jvp_rules, transpose_rules, tree, vmap_rules
from corejax.extend.types import physical_rules
from corejax_control_flow.programs.tracing import check_leaves


def optimization_barrier(operand: Any) -> Any:
    """Return the operand behind a barrier across which the compiler moves no operations.

    An operation that uses a result waits for all operands. No optimisation crosses the barrier: a computation that
    occurs on both sides runs twice. Derivatives have separate barriers for tangents and for cotangents.

    Args:
        operand: array, or pytree of arrays.

    Returns:
        A value equal to `operand`, of the same structure, shapes and dtypes.

    Raises:
        TypeError: if a leaf is not an array.
    """
    leaves, treedef = check_leaves("optimization_barrier", optimization_barrier, operand, "operand")
    return tree.tree_unflatten(treedef, optimization_barrier_p.bind(*leaves)) if leaves else operand


def _impl(*xs: Any) -> list[Any]:
    return list(xs)


def _abstract_eval(*avals: ShapedArray) -> list[ShapedArray]:
    return list(avals)


optimization_barrier_p = Primitive(
    "optimization_barrier",
    multiple_results=True,
    impl=_impl,
    abstract_eval=_abstract_eval,
    decomposition=lambda *xs: list(xs),
    doc="Return the operands behind a barrier across which the compiler moves no operations.",
)
physical_rules.register(optimization_barrier_p, lambda avals, *numbers: optimization_barrier_p.bind(*numbers))


@jvp_rules.register(optimization_barrier_p, symbolic_zeros=True)
def barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Bind a barrier for the primals and one for the tangents."""
    return optimization_barrier_p.bind(*primals), _through(tangents)


@vmap_rules.register(optimization_barrier_p)
def barrier_vmap(axis_size: int, vals: Any, dims: Any) -> tuple[list[Any], list[Any]]:
    """Bind a barrier for the batches."""
    return optimization_barrier_p.bind(*vals), list(dims)


@transpose_rules.register(optimization_barrier_p, symbolic_zeros=True)
def barrier_transpose(cts: Sequence[Any], *operands: Any) -> list[Any]:
    """Bind a barrier for the cotangents."""
    return _through(cts)


def _through(values: Sequence[Any]) -> list[Any]:
    """Bind a barrier for the values that are not None."""
    outs = iter(optimization_barrier_p.bind(*(x for x in values if x is not None)))
    return [None if x is None else next(outs) for x in values]
