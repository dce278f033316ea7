"""Callbacks that report exceptions as JAX does: an `XlaRuntimeError` with the class of the exception in its text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import corejax


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
    """Call a Python function without side effects; see `corejax.pure_callback`."""
    return corejax.pure_callback(_reporting(callback), result_shape_dtypes, *args, **kwargs)


def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a Python function with side effects; see `corejax.experimental.io_callback`."""
    return corejax.experimental.io_callback(_reporting(callback), result_shape_dtypes, *args, **kwargs)
