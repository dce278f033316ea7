"""`checkpoint_name`, the primitive `name` behind it, and names of parts of a program: `named_scope`, `named_call`.

name : a -> a
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    api_boundary,
    check_arguments,
    defvectorized,
    fun_name,
    jvp_rules,
    leaf_names,
    trace_state,
    transpose_rules,
    tree,
)


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
    leaves, treedef = tree.tree_flatten(x)
    check_arguments("checkpoint_name", checkpoint_name, leaves, lambda: leaf_names(treedef, "x"))
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


# -- scopes --------------------------------------------------------------------------------------------------


def named_scope(name: str) -> ContextDecorator:
    """Name what happens in a `with` block or, as a decorator, in a function.

    Names nest. They are part of the operations' names in compiled programs (`jit(f)/layer1/dot_general`), where
    profilers and `lower(...).as_text(debug_info=True)` show them; what is computed does not change. Transformations
    mark what they make: `transpose(jvp(layer1))`.

    Args:
        name: any text.

    Returns:
        A context manager, which is a decorator too.

    Raises:
        TypeError: the name is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope takes a string for a name, got {name!r} of type {type(name).__name__}")
    return _Scope(name)


class _Scope(ContextDecorator):
    """What `named_scope` returns.

    It is no generator: one that an interrupt leaves suspended runs its last part whenever it is collected.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.earlier = trace_state.scope

    def _recreate_cm(self) -> _Scope:
        return _Scope(self.name)

    def __enter__(self) -> None:
        self.earlier = trace_state.scope
        trace_state.scope = (*self.earlier, self.name)

    def __exit__(self, *error: object) -> None:
        trace_state.scope = self.earlier


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """The function, its operations in a scope of its own (see `named_scope`).

    Args:
        fun: any function.
        name: the scope's name; by default the function's own.

    Raises:
        TypeError: `fun` is not a function, or the name is not a string.
    """
    if not callable(fun):
        raise TypeError(f"named_call takes a function, got {fun!r} of type {type(fun).__name__}")
    scope = named_scope(fun_name(fun) if name is None else name)
    return functools.wraps(fun)(api_boundary(scope(fun)))
