"""Traces of functions that are jitted again, outside of transformations: `jit(step)(x)` or `jit(grad(f))(x)` in a loop.

The first two calls with a signature trace. From then on one is looked for whose function read what this one reads now
(`corejax.function_state`). They are the function's, and freed with it.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Array, drop_oldest, programs_of, same_state, state_of
from corejax_xla_backend._jit.shared_traces import TRACES, memo_of, wrapped_function
from corejax_xla_backend._jit.signatures import Signature

_MAX_SIGNATURES, _MAX_STATES = 32, 4  # of one function, and what was read of each; the oldest are dropped
_MOST_BYTES = 1 << 20  # of constants
_UNKNOWN = "what it reads can change unseen"


def earlier_trace(fun: Callable[..., Any], key: Signature) -> tuple[Any, Callable[[Any], None]]:
    """What an earlier `jit` traced of a function, if all that it reads is as it was.

    Args:
        fun: the function, or what a transformation made of it.
        key: the call's signature.

    Returns:
        The trace, or None; and what to give a new one to, that is to be found here later.
    """
    if type(fun) is not types.FunctionType:  # what an object or a partial call holds would live as long as a function
        return None, _forget
    traces = memo_of(wrapped_function(fun), TRACES)
    known = traces.pop(key, None)
    if known is None:  # most functions are jitted once: what they read is not looked for
        traces[key] = ()
        drop_oldest(traces, _MAX_SIGNATURES)
        return None, _forget
    traces[key] = known  # the latest
    before = None if known is _UNKNOWN else state_of(fun)
    if before is None:
        traces[key] = _UNKNOWN
        return None, _forget
    for state, found in known:
        if same_state(state, before):
            return found, _forget

    def keep(found: Any) -> None:
        after = state_of(fun)  # tracing may have changed it, a counter say
        if after is not None and same_state(before, after) and _is_kept(found):
            traces[key] = (*known[1 - _MAX_STATES :], (after, found))

    return None, keep


def _forget(found: Any) -> None:
    pass


def _is_kept(traced: Any) -> bool:
    """Whether a trace holds no large constants, and nothing that may change what it shares with others.

    That is what calls Python, and rules.
    """
    if sum(x.nbytes for x in traced.consts if isinstance(x, Array | np.ndarray)) > _MOST_BYTES:
        return False
    programs = programs_of(traced.closed.jaxpr)
    return not any(callable(x) for program in programs for eqn in program.eqns for x in eqn.params.values())
