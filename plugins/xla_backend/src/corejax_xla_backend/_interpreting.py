"""Programs evaluated by the eager rules where they would be compiled otherwise: the first tier of `jit`."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from corejax.extend import Array, ClosedJaxpr, eval_jaxpr_on_host
from corejax.extend.messages import Changed, run_within


class _State(threading.local):
    interpreting = False


_state = _State()


def interpreting() -> bool:
    """Whether this thread evaluates a program by the eager rules: programs inside of it are not compiled either."""
    return _state.interpreting


def interpret(closed: ClosedJaxpr, arrays: Sequence[Array]) -> list[Array]:
    """The results of a program by the eager rules."""
    values = [np.asarray(x) for x in arrays]
    with np.errstate(all="ignore"):  # as compiled programs do
        outs = run_within([Changed(_state, "interpreting", True)], eval_jaxpr_on_host, closed, values)
    return [Array(np.array(out, aval.dtype), aval) for out, aval in zip(outs, closed.out_avals, strict=True)]
