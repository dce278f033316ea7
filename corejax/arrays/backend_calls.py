"""Calls of a backend's methods, with checks of the results against `Backend` and notes on the exceptions.

The backend with the dispatcher is not checked: it handles most values, and its own tests cover the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays.backends import Backend, Device, Executable, backends
from corejax.base.texts import add_note, described, one_line
from corejax.core.avals import Avals
from corejax.errors import BackendError, CorejaxError
from corejax.messages import source_info
from corejax.messages.marks import is_noted, not_of_rule

if TYPE_CHECKING:
    from corejax.core.avals import ShapedArray


def compiled_by(backend: Backend, closed: object, *, name: str, **more: object) -> Executable:
    """Compile a program, a `ClosedJaxpr` of the function `name`; `more` are other arguments of `Backend.compile`.

    Raises:
        BackendError: the result is not an `Executable`.
    """
    executable: Executable = _call(backend, backend, "compile", lambda: repr(name), closed, name=name, **more)
    if backend is not backends.of_dispatcher:
        for method in ("run", "calls_python"):
            if not hasattr(executable, method):
                raise _protocol_error(backend, "compile", f"{_shown(executable)} for {name!r}, which has no {method!r}")
    return executable


def run_by(backend: Backend, executable: Executable, buffers: Sequence[object], out_avals: Avals) -> Sequence[Any]:
    """Run a program of a backend on buffers of its arguments and return the buffers of its results.

    Raises:
        BackendError: it does not return one buffer for each of `out_avals`.
    """
    outs: Sequence[Any] = _call(backend, executable, "run", None, buffers)
    if backend is backends.of_dispatcher:
        return outs
    wanted = f"the program has {len(out_avals)} {'result' if len(out_avals) == 1 else 'results'}"
    if not isinstance(outs, list | tuple):
        raise _protocol_error(backend, "run", f"{_shown(outs)}; {wanted}: expected a list of their buffers")
    if len(outs) != len(out_avals):
        raise _protocol_error(backend, "run", f"{len(outs)} {'buffer' if len(outs) == 1 else 'buffers'}; {wanted}")
    for i, out in enumerate(outs):
        if type(out) is not backend.buffer_type:
            raise _protocol_error(backend, "run", f"{_shown(out)} for result {i}; {_expected_buffers(backend)}")
    return outs


def put_by(backend: Backend, value: object, aval: ShapedArray, *device: Device) -> Any:
    """Return a buffer with a value.

    Raises:
        BackendError: the backend's `put` does not return a buffer.
    """
    buffer = _call(backend, backend, "put", aval.str_short, value, aval, *device)
    if type(buffer) is not backend.buffer_type and backend is not backends.of_dispatcher:
        raise _protocol_error(backend, "put", f"{_shown(buffer)} for {aval.str_short()}; {_expected_buffers(backend)}")
    return buffer


def fetched_by(backend: Backend, buffer: object, aval: ShapedArray | None) -> np.ndarray:
    """Return the value of a buffer as a NumPy array, checked against its type `aval` if that is known.

    Raises:
        BackendError: the backend does not return a NumPy array of that type.
    """
    host: np.ndarray = _call(backend, backend, "fetch", None, buffer)
    if backend is backends.of_dispatcher or aval is None:
        return host
    if not isinstance(host, np.ndarray):
        raise _protocol_error(backend, "fetch", f"{_shown(host)}; expected a NumPy array for {aval.str_short()}")
    if host.shape != aval.shape or host.dtype != aval.dtype:
        got = f"an array of shape {host.shape} and dtype {host.dtype}"
        raise _protocol_error(backend, "fetch", f"{got} for {aval.str_short()}")
    return host


def place_of(backend: Backend, buffer: object) -> Device:
    """Return the device or the sharding of a buffer."""
    return _call(backend, backend, "device_of", None, buffer)  # type: ignore[no-any-return]  # by its protocol


def _call(backend: Backend, of: Any, method: str, what: Callable[[], str] | None, *args: object, **more: object) -> Any:
    """Call a method of a backend or of its executable; an exception gets a note with the method and `what()`."""
    try:
        return getattr(of, method)(*args, **more)
    except Exception as error:
        _note(error, backend, f"{type(of).__qualname__}.{method}{f', of {what()}' if what else ''}")
        raise


def _protocol_error(backend: Backend, method: str, problem: str) -> BackendError:
    needed = source_info.needed("; it was needed at")
    return not_of_rule(BackendError(f"{described_backend(backend)}: its {method} returned {problem}{needed}"))


def described_backend(backend: Backend) -> str:
    """Return a backend's name and the plugin that provides it, for messages."""
    name = getattr(backend, "name", type(backend).__name__)
    owner = backends.owner_of(backend)
    return f"backend {name!r}" + (f", of plugin {owner.title}" if owner is not None else "")


def _expected_buffers(backend: Backend) -> str:
    return f"its buffers are of the class buffer_type, {backend.buffer_type.__qualname__}"


def _shown(x: object) -> str:
    text = one_line(described(x))
    return f"{text if len(text) < 60 else text[:57] + '...'} of type {type(x).__name__}" if x is not None else "None"


def _note(error: Exception, backend: Backend, method: str) -> None:
    """Add a note with the method that raised, unless the error has a note or came from kernel code that it called."""
    if is_noted(error) or isinstance(error, CorejaxError) or backend is backends.of_dispatcher:
        return
    from traceback import walk_tb  # imported here because only errors need it

    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    packages = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame in frames]
    if "corejax" not in packages[1:]:  # an error in kernel code that the backend calls is an error of the program
        needed = source_info.needed("; it was needed at")
        add_note(error, f"This came out of {described_backend(backend)}: {method}{needed}.")
        not_of_rule(error)
