"""`dce_sink`: mark a value as used, so that dead code elimination keeps the equations that compute it.

dce_sink : a ->
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, jvp_rules, transpose_rules, vmap_rules
from corejax.extend.types import physical_rules
from corejax_control_flow.programs.tracing import check_leaves


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Mark values as used, so that a program keeps the equations that compute them.

    Differentiated and batched programs keep these equations as well.

    Args:
        val: array, or pytree of arrays.
        prevent_mlir_dce: if True, the compiler also keeps the operations; if False, it drops unused ones.

    Raises:
        TypeError: if a leaf is not an array.
    """
    for leaf in check_leaves("dce_sink", dce_sink, val, "val")[0]:
        dce_sink_p.bind(leaf, prevent_mlir_dce=bool(prevent_mlir_dce))


def _impl(x: Any, *, prevent_mlir_dce: bool) -> list[Any]:
    return []


def _abstract_eval(x: ShapedArray, *, prevent_mlir_dce: bool) -> list[ShapedArray]:
    return []


dce_sink_p = Primitive(
    "dce_sink",
    multiple_results=True,
    effects=("no_dce",),
    impl=_impl,
    abstract_eval=_abstract_eval,
    doc="Mark a value as used. Params: prevent_mlir_dce.",
)
physical_rules.register(dce_sink_p, lambda avals, *numbers, **params: dce_sink_p.bind(*numbers, **params))


@jvp_rules.register(dce_sink_p, symbolic_zeros=True)
def sink_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    """Mark the primal as used, not the tangent."""
    return dce_sink_p.bind(*primals, **params), []


@vmap_rules.register(dce_sink_p)
def sink_vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    """Mark the batch as used."""
    return dce_sink_p.bind(*vals, **params), []


@transpose_rules.register(dce_sink_p, symbolic_zeros=True)
def sink_transpose(cts: Sequence[Any], x: Any, **params: Any) -> list[None]:
    """Return no cotangent, as the primitive has no results."""
    return [None]
