"""`debug.breakpoint`: a prompt in the middle of a program, with the values of the variables on the call stack.

The frames are recorded when `breakpoint` is called, which is while a compiled function is traced. Traced values in
their variables become operands of a callback. When the program runs, the callback puts the concrete values in place
of the traced ones and starts the prompt.
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
    """Stop the program and start a prompt, eagerly and from compiled programs, as `debug.callback` calls a function.

    The commands are those of pdb: `p expression`, `pp`, `up`, `down`, `where`, `list`, `continue`, `help`, and `quit`,
    which raises `bdb.BdbQuit`.

    Args:
        backend: "cli", the prompt; the only backend.
        filter_frames: whether to omit the library's own frames.
        num_frames: number of frames to show; all unless given.
        ordered: whether the program stops after the ordered callbacks before the breakpoint, also in loops and
            branches.
        token: pytree of arrays that are computed before the program stops; they are returned.
        kwargs: `stdin` and `stdout`: files to read commands from and write to.

    Returns:
        The token.

    Raises:
        ValueError: the backend is unknown, or `num_frames` is not positive.
        TypeError: a keyword argument is unknown.
    """
    if backend is not None and backend not in _BACKENDS:
        raise ValueError(f"debug.breakpoint: backend must be one of {_BACKENDS} or None, got {backend!r}")
    if num_frames is not None and num_frames < 1:
        raise ValueError(f"debug.breakpoint: num_frames must be at least 1, got {num_frames}")
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
    """Return the variables that contain live tracers, which become operands of the callback."""

    def traced(value: Any) -> bool:
        tracers = [x for x in tree.tree_leaves(value) if isinstance(x, Tracer)]
        return bool(tracers) and all(x._trace.alive for x in tracers)

    return {name: value for name, value in variables.items() if traced(value)}
