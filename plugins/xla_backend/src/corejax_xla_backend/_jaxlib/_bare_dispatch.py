"""jaxlib's dispatcher over NumPy arrays and bare buffers, for programs that other libraries call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax_xla_backend._exit import stop_at_exit

from ._buffers import place
from ._classes import Buffer
from ._client import check_not_forked
from ._dispatch_state import make_dispatcher
from ._executable import Executable, FastpathData
from ._probe import core

STORED = object()
"""The result of the first call of a signature, which only stores the program: the same call again runs it."""

_registry = core.pytree.PyTreeRegistry()
_MOST_SIGNATURES = 4096


def bare_dispatch(name: str, cache_miss: Callable[..., tuple[Any, FastpathData | None]]) -> Any:
    """Return a callable that runs compiled programs by signature on NumPy arrays and buffers, and returns buffers.

    Args:
        name: shown in profiles.
        cache_miss: called with the arguments of a call that has no fast path. Returns `STORED` with the result of
            `bare_fastpath_data`, or the result for the caller with None.
    """

    def on_miss(*arguments: Any) -> tuple[Any, FastpathData | None, bool]:
        check_not_forked()
        stop_at_exit()
        return *cache_miss(*arguments), False

    def without_dispatcher(*arguments: Any) -> Any:
        return cache_miss(*arguments)[0]

    cache = core.PjitFunctionCache(_MOST_SIGNATURES)
    return make_dispatcher(name, without_dispatcher, on_miss, [], [], object(), _registry, place, cache)


def bare_fastpath_data(executable: Executable, kept: Sequence[bool], consts: Sequence[Buffer]) -> FastpathData:
    """Return the data that a dispatcher needs to repeat a call; the results are a list of buffers.

    Args:
        executable: the program; its inputs are the kept ones of `(*consts, *arguments)`.
        kept: for each of `(*consts, *arguments)`, whether the executable takes it.
        consts: buffers that are passed before the arguments.
    """
    out_tree = _registry.flatten([0] * len(executable.out_avals))[1]
    return executable.fastpath_data(out_tree, kept, consts)
