"""`optimization_barrier`: the identity on several operands, across which the compiler moves nothing.

optimization_barrier : [a] -> [a]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, jvp_rules, transpose_rules, tree, vmap_rules
from corejax.extend.types import physical_rules
from corejax_control_flow.programs.tracing import check_leaves


def optimization_barrier(operand: Any) -> Any:
    """`operand` itself, across which the compiler moves nothing.

    What uses a result waits for all operands, and no optimisation sees through: the same computation on either
    side is done twice. Derivatives have barriers of their own: one for tangents, one for cotangents.

    Args:
        operand: array, or pytree of arrays.

    Returns:
        A value of the structure, shapes and dtypes of `operand`.

    Raises:
        TypeError: a leaf is not an array.
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
    doc="Its operands, which the compiler moves nothing across.",
)
physical_rules.register(optimization_barrier_p, lambda avals, *numbers: optimization_barrier_p.bind(*numbers))


@jvp_rules.register(optimization_barrier_p, symbolic_zeros=True)
def barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """A barrier for the primals and one for the tangents."""
    return optimization_barrier_p.bind(*primals), _through(tangents)


@vmap_rules.register(optimization_barrier_p)
def barrier_vmap(axis_size: int, vals: Any, dims: Any) -> tuple[list[Any], list[Any]]:
    """Batches pass through."""
    return optimization_barrier_p.bind(*vals), list(dims)


@transpose_rules.register(optimization_barrier_p, symbolic_zeros=True)
def barrier_transpose(cts: Sequence[Any], *operands: Any) -> list[Any]:
    """A barrier for the cotangents."""
    return _through(cts)


def _through(values: Sequence[Any]) -> list[Any]:
    """A barrier for the values that are not zero."""
    outs = iter(optimization_barrier_p.bind(*(x for x in values if x is not None)))
    return [None if x is None else next(outs) for x in values]
