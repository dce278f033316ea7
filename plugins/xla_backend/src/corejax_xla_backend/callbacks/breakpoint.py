"""`debug.breakpoint`: a prompt in the middle of a program, with the values of the frames that it was reached by.

The frames are those of the call: of a compiled function, of its tracing. What is traced in their variables becomes
operands of a callback, which puts the values in its place and asks.
"""

from __future__ import annotations

import linecache
from types import FrameType
from typing import Any

from corejax.extend import Tracer, tree
from corejax.extend.messages import user_frames
from corejax_xla_backend.callbacks.debug_callback import call
from corejax_xla_backend.callbacks.debugger import Debugger, Frame

_BACKENDS = ("cli",)


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop and ask what to show: eagerly, and in a compiled program when it comes here; as `debug.callback`.

    Commands are pdb's: `p expression`, `pp`, `up`, `down`, `where`, `list`, `continue`, `quit`, which raises
    `bdb.BdbQuit`, and `help`.

    Args:
        backend: "cli", a prompt, which is the only one there is.
        filter_frames: whether the library's own frames are left out.
        num_frames: how many frames there are to look at; all unless given.
        ordered: whether it stops after ordered calls before it, in loops and branches too.
        token: arrays that have to be computed before it stops; they are returned.
        kwargs: `stdin` and `stdout`: files to read commands from and write to.

    Returns:
        The token.

    Raises:
        ValueError: there is no such backend, or `num_frames` is not positive.
        TypeError: there is no such argument.
    """
    if backend is not None and backend not in _BACKENDS:
        raise ValueError(f"debug.breakpoint: the backend is one of {_BACKENDS} or None, got {backend!r}")
    if num_frames is not None and num_frames < 1:
        raise ValueError(f"debug.breakpoint: num_frames is at least 1, got {num_frames}")
    unknown = set(kwargs) - {"stdin", "stdout"}
    if unknown:
        raise TypeError(f"debug.breakpoint takes stdin and stdout for its backend, got {', '.join(sorted(unknown))}")
    debugger = Debugger([_described(f) for f in user_frames(filtered=filter_frames)[:num_frames]], **kwargs)
    variables = [_fetchable(frame.variables) for frame in debugger.frames]
    call("debug.breakpoint", debugger, (variables, token), {}, ordered, lambda x: isinstance(x, Tracer))
    return token


def _described(frame: FrameType) -> Frame:
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    return Frame(code.co_filename, frame.f_lineno, code.co_qualname, lines, dict(frame.f_locals), frame.f_globals)


def _fetchable(variables: dict[str, Any]) -> dict[str, Any]:
    """Variables with something traced in them, which is put in its place when it is known."""

    def traced(value: Any) -> bool:
        tracers = [x for x in tree.tree_leaves(value) if isinstance(x, Tracer)]
        return bool(tracers) and all(x._trace.alive for x in tracers)

    return {name: value for name, value in variables.items() if traced(value)}
