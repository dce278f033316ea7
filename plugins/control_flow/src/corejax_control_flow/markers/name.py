"""`checkpoint_name`, and the primitive `name` behind it.

name : a -> a
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, defvectorized, jvp_rules, transpose_rules, tree
from corejax_control_flow.programs.tracing import check_leaves


def checkpoint_name(x: Any, name: str) -> Any:
    """Name a value for policies of `checkpoint`, and return it.

    Args:
        x: array, or pytree of arrays.
        name: the name; see `corejax.checkpoint_policies.save_only_these_names`. Under `grad` it names the primal.

    Returns:
        A value equal to `x`, of the same structure, shapes and dtypes.

    Raises:
        TypeError: if the name is not a string, or a leaf is not an array.
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name takes a string for a name, got {name!r} of type {type(name).__name__}")
    leaves, treedef = check_leaves("checkpoint_name", checkpoint_name, x, "x")
    return tree.tree_unflatten(treedef, [name_p.bind(leaf, name=name) for leaf in leaves])


def _impl(x: np.ndarray[Any, Any], *, name: str) -> np.ndarray[Any, Any]:
    return x


def _abstract_eval(x: ShapedArray, *, name: str) -> ShapedArray:
    return x


name_p = Primitive(
    "name",
    impl=_impl,
    abstract_eval=_abstract_eval,
    linear_in=(0,),
    tags=("elementwise",),
    decomposition=lambda x, *, name: x,
    doc="Name the operand for policies of checkpoint, and return it. Params: name.",
)
defvectorized(name_p)


@jvp_rules.register(name_p, symbolic_zeros=True)
def name_jvp(primals: Any, tangents: Any, *, name: str) -> tuple[Any, Any]:
    """Name the primal, not the tangent."""
    return name_p.bind(*primals, name=name), tangents[0]


@transpose_rules.register(name_p)
def name_transpose(ct: Any, x: Any, *, name: str) -> list[Any]:
    """Return the cotangent unchanged."""
    return [ct]
