"""Traces that several `jit` of one function share: inside a transformation it is traced once for each signature.

They belong to the outermost transformation that is running and are freed with it. Outside of all, each `jit` of a
function has traces of its own, so that calling `jit` again sees what has changed since.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from corejax.extend import (
    bottom_trace,
    current_trace,
    trace_stack,
)
from corejax_xla_backend._jit.signatures import Signature


def shared_traces(fun: Callable[..., Any]) -> dict[Signature, Any]:
    """What the running transformation has of a function, to look in and to add to; of a method, of its object's."""
    if current_trace() is bottom_trace():
        return {}
    memo = trace_stack()[1].kept()
    key = (id(fun.__self__), id(fun.__func__)) if type(fun) is types.MethodType else id(fun)
    return memo.setdefault(("jit", key), (fun, {}))[1]  # type: ignore[no-any-return]  # the function keeps its identity
