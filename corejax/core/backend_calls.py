"""Calls of a backend's methods: what they give is held to what `Backend` promises, what they raise names the backend.

The backend with the dispatcher is taken at its word: it compiles and moves most values, and its own tests hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.base.texts import add_note, described, one_line
from corejax.core.backends import Backend, Device, Executable, backends
from corejax.errors import BackendError, CorejaxError
from corejax.messages import source_info
from corejax.messages.marks import is_noted, not_of_rule

if TYPE_CHECKING:
    from corejax.core.avals import ShapedArray


def compiled_by(backend: Backend, closed: Any, *, name: str, **more: Any) -> Executable:
    """Compile a program, a `ClosedJaxpr` of the function `name`, by a backend; its `compile` takes `more`.

    Raises:
        BackendError: what it gives cannot be run.
    """
    found: Executable = _call(backend, backend, "compile", lambda: repr(name), closed, name=name, **more)
    if backend is not backends.of_dispatcher:
        for method in ("run", "calls_python"):
            if not hasattr(found, method):
                raise _refusal(backend, "compile", f"{_shown(found)} for {name!r}, which has no {method!r}")
    return found


def run_by(
    backend: Backend, executable: Executable, buffers: Sequence[Any], out_avals: Sequence[ShapedArray]
) -> Sequence[Any]:
    """Run a program of a backend on buffers of its arguments; its results have the types `out_avals`.

    Raises:
        BackendError: it gives something else.
    """
    outs: Sequence[Any] = _call(backend, executable, "run", None, buffers)
    if backend is backends.of_dispatcher:
        return outs
    wanted = f"the program has {len(out_avals)} {'result' if len(out_avals) == 1 else 'results'}"
    if not isinstance(outs, list | tuple):
        raise _refusal(backend, "run", f"{_shown(outs)}; {wanted}, and a list of their buffers has to come")
    if len(outs) != len(out_avals):
        raise _refusal(backend, "run", f"{len(outs)} {'buffer' if len(outs) == 1 else 'buffers'}; {wanted}")
    for i, out in enumerate(outs):
        if type(out) is not backend.buffer_type:
            raise _refusal(backend, "run", f"{_shown(out)} for result {i}; {_buffers(backend)}")
    return outs


def put_by(backend: Backend, value: Any, aval: ShapedArray, *device: Device) -> Any:
    """A buffer with a value.

    Raises:
        BackendError: the backend gives none.
    """
    buffer = _call(backend, backend, "put", aval.str_short, value, aval, *device)
    if type(buffer) is not backend.buffer_type and backend is not backends.of_dispatcher:
        raise _refusal(backend, "put", f"{_shown(buffer)} for {aval.str_short()}; {_buffers(backend)}")
    return buffer


def fetched_by(backend: Backend, buffer: Any, aval: ShapedArray | None) -> np.ndarray[Any, Any]:
    """Return the value of a buffer, which has the type `aval` if that is known.

    Raises:
        BackendError: the backend gives no NumPy array, or one of another type.
    """
    host: np.ndarray[Any, Any] = _call(backend, backend, "fetch", None, buffer)
    if backend is backends.of_dispatcher or aval is None:
        return host
    if not isinstance(host, np.ndarray):
        raise _refusal(backend, "fetch", f"{_shown(host)}; a NumPy array has to come, for {aval.str_short()}")
    if host.shape != aval.shape or host.dtype != aval.dtype:
        got = f"an array of shape {host.shape} and dtype {host.dtype}"
        raise _refusal(backend, "fetch", f"{got} for {aval.str_short()}")
    return host


def place_of(backend: Backend, buffer: Any) -> Device:
    """Where a buffer is."""
    return _call(backend, backend, "device_of", None, buffer)  # type: ignore[no-any-return]


def _call(backend: Backend, of: Any, method: str, what: Callable[[], str] | None, *args: Any, **more: Any) -> Any:
    """Call a method of a backend or of its executable; an exception gets a note that names the method, and `what()`."""
    try:
        return getattr(of, method)(*args, **more)
    except Exception as error:
        _note(error, backend, f"{type(of).__qualname__}.{method}{f', of {what()}' if what else ''}")
        raise


def _refusal(backend: Backend, method: str, problem: str) -> BackendError:
    needed = source_info.needed("; it was needed at")
    return not_of_rule(BackendError(f"{whose(backend)}: its {method} gives {problem}{needed}"))


def whose(backend: Backend) -> str:
    """What a backend is called in messages: its name, and the plugin that provides it."""
    name = getattr(backend, "name", type(backend).__name__)
    owner = backends.owner_of(backend)
    return f"backend {name!r}" + (f", of plugin {owner.title}" if owner is not None else "")


def _buffers(backend: Backend) -> str:
    return f"its buffers are of the class buffer_type, {backend.buffer_type.__qualname__}"


def _shown(x: Any) -> str:
    text = one_line(described(x))
    return f"{text if len(text) < 60 else text[:57] + '...'} of type {type(x).__name__}" if x is not None else "None"


def _note(error: Exception, backend: Backend, method: str) -> None:
    """Say whose method raised, unless that is said already, or something did that the method called the kernel for."""
    if is_noted(error) or isinstance(error, CorejaxError) or backend is backends.of_dispatcher:
        return
    from traceback import walk_tb  # needed for an error only

    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    packages = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame in frames]
    if "corejax" not in packages[1:]:  # what it has the kernel do, the program is to blame for
        where = source_info.needed("; it was needed at")
        add_note(error, f"This came out of {whose(backend)}: {method}{where}.")
        not_of_rule(error)
