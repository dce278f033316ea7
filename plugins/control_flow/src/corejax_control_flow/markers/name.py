"""`checkpoint_name`, and the primitive `name` behind it.

name : a -> a
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, defvectorized, jvp_rules, transpose_rules, tree
from corejax_control_flow.programs.tracing import check_leaves


def checkpoint_name(x: Any, name: str) -> Any:
    """`x` itself, with a name that policies of `checkpoint` know it by.

    Args:
        x: array, or pytree of arrays.
        name: the name; see `corejax.checkpoint_policies.save_only_these_names`. Under `grad` the primal has it.

    Returns:
        A value of the structure, shapes and dtypes of `x`.

    Raises:
        TypeError: the name is not a string, or a leaf is not an array.
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
    doc="Its operand, with a name that policies of checkpoint know it by. Params: name.",
)
defvectorized(name_p)


@jvp_rules.register(name_p, symbolic_zeros=True)
def name_jvp(primals: Any, tangents: Any, *, name: str) -> tuple[Any, Any]:
    """The primal has the name, the tangent has none."""
    return name_p.bind(*primals, name=name), tangents[0]


@transpose_rules.register(name_p)
def name_transpose(ct: Any, x: Any, *, name: str) -> list[Any]:
    """The cotangent as it is."""
    return [ct]
