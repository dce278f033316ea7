"""Programs that were traced before: a body that is traced again to the same program uses the earlier one.

Loops and branches trace their functions at each call, so that they see whatever has changed since. What is derived of
a program (transformed programs, executables) is kept with the program object; if a trace equals an earlier trace of the
same code, the earlier object takes its place, and nothing is derived twice.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from corejax.extend import Jaxpr
from corejax.extend.messages import clears_cache, drop_oldest
from corejax.extend.programs import programs_of, same_jaxpr

_LIMIT = 256  # programs kept; the oldest are dropped
_known: dict[Any, Jaxpr] = {}
clears_cache(_known.clear)


def known_program(transform: str, fun: Callable[..., Any], jaxpr: Jaxpr) -> Jaxpr:
    """Return the earlier program of a function's code if it equals the given one, else the given one, which is kept.

    Programs with functions as parameters are not kept: these may hold arrays, and differ in what they close over.
    """
    if type(fun) is not types.FunctionType:
        return jaxpr
    key = (fun.__code__, transform, *jaxpr.in_avals)
    found = _known.get(key)
    if found is not None and same_jaxpr(found, jaxpr, scopes=True):
        return found
    if not any(callable(x) for part in programs_of(jaxpr) for eqn in part.eqns for x in eqn.params.values()):
        jaxpr.debug_info = jaxpr.debug_info.without_function()
        _known[key] = jaxpr
        drop_oldest(_known, _LIMIT)
    return jaxpr
