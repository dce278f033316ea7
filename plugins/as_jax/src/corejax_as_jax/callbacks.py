"""Callbacks that report exceptions as JAX does: an `XlaRuntimeError` with the class of the exception in its text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import corejax
from corejax.extend import tree


class JaxRuntimeError(RuntimeError):
    """The error of a callback that raised an exception, which is its cause."""


def _reporting(callback: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(callback, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return callback(*args, **kwargs)
        except Exception as error:
            text = f"INTERNAL: CpuCallback error calling callback: {type(error).__name__}: {error}"
            raise JaxRuntimeError(text) from error

    return call


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a Python function without side effects; see `corejax.pure_callback`.

    Results are weakly typed if `result_shape_dtypes` says so. Equinox's `error_if` makes a branch with a callback and
    one that returns a value; the result is as weak as the value only if both are.
    """
    outs = corejax.pure_callback(_reporting(callback), result_shape_dtypes, *args, **kwargs)
    return tree.tree_map(_as_weak_as, outs, result_shape_dtypes)


def _as_weak_as(x: Any, wanted: Any) -> Any:
    if not getattr(wanted, "weak_type", False):
        return x
    return corejax.lax.convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=True)


def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a Python function with side effects; see `corejax.experimental.io_callback`."""
    return corejax.experimental.io_callback(_reporting(callback), result_shape_dtypes, *args, **kwargs)
