"""`jax.grad`, `jax.jvp` and `jax.custom_jvp`: JAX's arguments, stricter dtypes, and Python numbers that stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import corejax
from corejax.extend import bottom_trace, current_trace, dtypes, get_aval, tree
from corejax.extend.transforms import float0

_NUMBERS = (bool, int, float, complex)


class custom_jvp(corejax.custom_jvp):  # type: ignore[type-arg]  # JAX's class takes no type arguments
    """`corejax.custom_jvp`; outside of transformations, Python numbers stay what they are."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if current_trace() is bottom_trace() and any(type(x) in _NUMBERS for x in tree.tree_leaves((args, kwargs))):
            return self.fun(*args, **kwargs)
        return super().__call__(*args, **kwargs)


def grad(fun: Callable[..., Any], *args: Any, reduce_axes: Sequence[Any] = (), **kwargs: Any) -> Callable[..., Any]:
    """Return the gradient function; see `corejax.grad`. JAX takes `reduce_axes`, which must be empty."""
    _check_no_axes("grad", reduce_axes)
    return corejax.grad(fun, *args, **kwargs)


def value_and_grad(
    fun: Callable[..., Any], *args: Any, reduce_axes: Sequence[Any] = (), **kwargs: Any
) -> Callable[..., Any]:
    """Return the function of value and gradient; see `corejax.value_and_grad`. `reduce_axes` must be empty."""
    _check_no_axes("value_and_grad", reduce_axes)
    return corejax.value_and_grad(fun, *args, **kwargs)


def _check_no_axes(name: str, reduce_axes: Sequence[Any]) -> None:
    if reduce_axes:
        raise NotImplementedError(
            f"{name}: reduce_axes must be empty, got {reduce_axes}; apply lax.psum to the gradient"
        )


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Push tangents forward; see `corejax.jvp`.

    Raises:
        TypeError: the dtype of a tangent is not that of its primal; corejax itself would convert it.
    """
    flat, flat_tangents = tree.tree_leaves(primals), tree.tree_leaves(tangents)
    if len(flat) == len(flat_tangents):
        for x, t in zip(flat, flat_tangents, strict=True):
            if type(t) not in _NUMBERS and hasattr(t, "dtype"):
                _check_tangent(fun, get_aval(x).dtype, t.dtype)
    return corejax.jvp(fun, primals, tangents, has_aux=has_aux)


def _check_tangent(fun: Any, primal: Any, tangent: Any) -> None:
    wanted = primal if dtypes.is_inexact(primal) or dtypes.is_extended(primal) else float0
    if tangent != wanted:
        raise TypeError(
            f"jvp of {getattr(fun, '__name__', fun)}: primal and tangent arguments do not match: a tangent of dtype "
            f"{tangent} for a primal of dtype {primal}, instead of {wanted}"
        )
