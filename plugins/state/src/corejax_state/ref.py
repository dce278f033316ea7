"""`corejax.ref`: mutable references to arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import corejax.numpy as jnp
from corejax.extend import tree
from corejax.extend.messages import api_boundary, user_line
from corejax_lax_basic import lax
from corejax_state import arguments as arguments  # declares references in arguments
from corejax_state.discharge import RefPrimitive, discharge_rules
from corejax_state.indexing import add_to
from corejax_state.reference import AbstractRef, Ref

__all__ = [
    "AbstractRef",
    "Ref",
    "RefPrimitive",
    "addupdate",
    "discharge_rules",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "run_state",
    "set",
    "swap",
]

T = TypeVar("T")
KINDS = (None, "no_grad_no_remat")


@api_boundary
def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Make a mutable reference to an array.

    Args:
        init_val: the first value. The reference holds arrays of its shape and dtype.
        memory_space: ignored; JAX's hint for accelerators.
        kind: None, or `"no_grad_no_remat"` for values that are not differentiated: what is written counts as constant.

    Returns:
        The reference.

    Raises:
        TypeError: `init_val` is not an array.
        ValueError: there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"new_ref: kind is None or 'no_grad_no_remat', got {kind!r}")
    if isinstance(init_val, Ref):
        raise TypeError(f"new_ref: {init_val!r} is a reference: pass its value, ref[...]")
    return Ref(lax.stop_gradient(jnp.asarray(init_val)) if kind else jnp.asarray(init_val), kind)


@api_boundary
def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Make a reference to an array whose first value does not matter; here it is zero.

    Args:
        ty: an object with `shape` and `dtype`, such as a `ShapeDtypeStruct`.
        memory_space: ignored; JAX's hint for accelerators.
    """
    return new_ref(jnp.zeros(ty.shape, ty.dtype))


@api_boundary
def freeze(ref: Ref) -> Any:
    """Return the value of a reference, which cannot be used afterwards.

    Raises:
        TypeError: `ref` is not a reference.
        ValueError: the reference is frozen already, or belongs to an enclosing function.
    """
    value = _reference("freeze", ref).get()
    ref.end(f"is frozen, by freeze at {user_line()}")
    return value


@api_boundary
def free_ref(ref: Ref) -> None:
    """Release the memory of a reference, which cannot be used afterwards."""
    _reference("free_ref", ref).get()
    ref.end(f"is freed, by free_ref at {user_line()}")


@api_boundary
def get(ref: Any, idx: Any = None) -> Any:
    """Return `ref[idx]`, or the whole value if `idx` is None."""
    return ref[... if idx is None else idx]


@api_boundary
def set(ref: Any, idx: Any, value: Any) -> None:
    """Write `ref[idx] = value`; the whole value if `idx` is None."""
    ref[... if idx is None else idx] = value


@api_boundary
def swap(ref: Any, idx: Any, value: Any) -> Any:
    """Write `ref[idx] = value` and return the earlier part; the whole value if `idx` is None."""
    idx = ... if idx is None else idx
    earlier = ref[idx]
    ref[idx] = value
    return earlier


@api_boundary
def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to a part: `ref[idx] += x`, in which elements that `idx` has several times are added to several times."""
    add_to(ref, ... if idx is None else idx, x)


@api_boundary
def run_state(fun: Callable[..., None]) -> Callable[[T], T]:
    """Return the function of initial values that runs `fun` on references to them and returns the last values.

    Args:
        fun: function of a pytree of references, which returns None.
    """

    def run(init: T) -> T:
        refs = tree.tree_map(new_ref, init)
        fun(refs)
        leaves, structure = tree.tree_flatten(refs, is_leaf=lambda x: isinstance(x, Ref))
        return tree.tree_unflatten(structure, [freeze(x) for x in leaves])  # type: ignore[no-any-return]  # T

    return run


def _reference(operation: str, ref: Any) -> Ref:
    if not isinstance(ref, Ref):
        raise TypeError(f"{operation}: expected a reference (new_ref), got {ref!r} of type {type(ref).__name__}")
    return ref
