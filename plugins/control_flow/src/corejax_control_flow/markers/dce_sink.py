"""`dce_sink`: a value that counts as used, so that what computes it stays in programs.

dce_sink : a ->
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, jvp_rules, transpose_rules, vmap_rules
from corejax.extend.types import physical_rules
from corejax_control_flow.programs.tracing import check_leaves


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Values that count as used: a program keeps the equations that compute them, though nothing else needs them.

    Derivatives and batches keep them too.

    Args:
        val: array, or pytree of arrays.
        prevent_mlir_dce: whether the compiler keeps them as well; otherwise it drops what has no other use.

    Raises:
        TypeError: a leaf is not an array.
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
    doc="A value that counts as used. Params: prevent_mlir_dce.",
)
physical_rules.register(dce_sink_p, lambda avals, *numbers, **params: dce_sink_p.bind(*numbers, **params))


@jvp_rules.register(dce_sink_p, symbolic_zeros=True)
def sink_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    """The primal is used; its tangent is nobody's concern."""
    return dce_sink_p.bind(*primals, **params), []


@vmap_rules.register(dce_sink_p)
def sink_vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    """The whole batch is used."""
    return dce_sink_p.bind(*vals, **params), []


@transpose_rules.register(dce_sink_p, symbolic_zeros=True)
def sink_transpose(cts: Sequence[Any], x: Any, **params: Any) -> list[None]:
    """It gives nothing, so nothing comes back."""
    return [None]
