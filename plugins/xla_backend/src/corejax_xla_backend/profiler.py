"""`corejax.profiler`: what takes the time and the memory.

    with corejax.profiler.trace("profile"):
        step(params, batch).block_until_ready()

writes `profile/plugins/profile/TIME/HOST.trace.json.gz`, which https://ui.perfetto.dev opens, and `HOST.xplane.pb` for
TensorBoard and `ProfileData`. In the first one XLA's operations are called as the program calls them (named scopes,
transformations, the primitive), and have the user's line.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import itertools
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from corejax_xla_backend import _jaxlib
from corejax_xla_backend._jaxlib import _profiler
from corejax_xla_backend._perfetto import name_operations

ProfileData = _profiler.ProfileData
ProfileEvent = _profiler.ProfileEvent
ProfilePlane = _profiler.ProfilePlane

__all__ = [  # noqa: RUF022  by subject
    "ProfileOptions",
    "start_trace",
    "stop_trace",
    "trace",
    "TraceAnnotation",
    "StepTraceAnnotation",
    "annotate_function",
    "ProfileData",
    "ProfileEvent",
    "ProfilePlane",
    "device_memory_profile",
    "save_device_memory_profile",
    "register_subprocess",
    "start_server",
    "stop_server",
]

R = TypeVar("R")

_PERFETTO = "perfetto_trace.json.gz"


class ProfileOptions(_profiler.ProfileOptions):
    """What a trace records.

    Attributes:
        python_tracer_level: 1 for calls of Python functions, the default; 0 is faster and smaller.
        host_tracer_level: 0 for nothing of the host, 1 for annotations only, 2 for XLA's steps too (the default), 3 for
            all.
    """


class _Running(NamedTuple):
    """The trace that is being recorded: a process has one at most."""

    session: Any
    log_dir: str
    perfetto: bool
    link: bool


_lock = threading.Lock()
_running: _Running | None = None
_server: Any = None


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Begin to record what the process does, until `stop_trace`.

    Args:
        log_dir: directory that the trace is written to, made if it is not there.
        create_perfetto_link: have `stop_trace` print a link to https://ui.perfetto.dev, and wait until that has read
            the trace, by a server on port 9001 of this machine.
        create_perfetto_trace: also write `perfetto_trace.json.gz`, the same trace by JAX's name for it.
        profiler_options: what is recorded.

    Raises:
        RuntimeError: a trace is being recorded, by this module or another profiler in the process.
        OSError: the directory cannot be written.
    """
    global _running
    directory = os.fspath(log_dir)
    with _lock:
        if _running is not None:
            raise RuntimeError(
                f"start_trace: a trace for {_running.log_dir!r} is being recorded already; stop_trace() ends it. A "
                "process records one trace at a time"
            )
        if _profiler.TraceMe.is_enabled():
            raise RuntimeError(
                "start_trace: another profiler is recording in this process, jax's perhaps; a process records one "
                "trace at a time"
            )
        _make_directory(directory)
        _jaxlib.client()  # devices take part only where they are known before the session begins
        session = _profiler.ProfilerSession(ProfileOptions() if profiler_options is None else profiler_options)
        _running = _Running(session, directory, create_perfetto_trace or create_perfetto_link, create_perfetto_link)


def _make_directory(directory: str) -> None:
    """Make the directory and write to it: now, and not after an hour of recording."""
    try:
        os.makedirs(directory, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise OSError(error.errno, f"start_trace cannot write to its log_dir ({error.strerror})", directory) from None


def stop_trace() -> None:
    """End the trace that is being recorded, and write it to its directory.

    Whatever happens, none is being recorded afterwards.

    Raises:
        RuntimeError: none is being recorded, or nothing was recorded.
        OSError: the directory cannot be written any more.
    """
    global _running
    with _lock:
        running, _running = _running, None
        if running is None:
            raise RuntimeError("stop_trace: no trace is being recorded; start_trace(log_dir) begins one")
        try:
            recorded = running.session.stop()
        except RuntimeError as error:
            raise _lost(running, error) from None
    temporary = os.path.join(running.log_dir, f".corejax-{os.getpid()}-{time.monotonic_ns()}")
    try:
        try:
            written = _export(running, recorded, temporary)
        finally:
            _remove(temporary)
    finally:
        _remove(temporary)  # an interrupt may have arrived in the first one
    if running.link:
        from corejax_xla_backend._perfetto_server import serve  # only somebody who looks at once needs a server

        serve(os.path.join(written, _PERFETTO))


def _remove(directory: str) -> None:
    """Remove a directory; `shutil.rmtree` makes an OSError of an interrupt."""
    for place, _, files in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):
            for file in files:
                os.remove(os.path.join(place, file))
            os.rmdir(place)


def _lost(running: _Running, error: Exception) -> Exception:
    text = f"stop_trace: the trace for {running.log_dir!r} is lost: {error}"
    return OSError(error.errno, text) if isinstance(error, OSError) else RuntimeError(text)


def _export(running: _Running, recorded: bytes, temporary: str) -> str:
    """Write a trace into a directory, name its operations, and put it where it belongs."""
    try:
        os.makedirs(temporary)
        running.session.export(recorded, temporary)
    except (RuntimeError, OSError) as error:
        raise _lost(running, error) from None
    (made,) = os.scandir(os.path.join(temporary, "plugins", "profile"))
    for name in os.listdir(made.path):
        if name.endswith(".trace.json.gz"):
            events = name_operations(os.path.join(made.path, name))
            if running.perfetto:
                with gzip.open(os.path.join(made.path, _PERFETTO), "wb", compresslevel=6) as file:
                    file.write(events)
    place = os.path.join(running.log_dir, "plugins", "profile")
    os.makedirs(place, exist_ok=True)
    for number in itertools.count(1):  # XLA calls it by the second
        written = os.path.join(place, made.name if number == 1 else f"{made.name}_{number}")
        try:
            os.mkdir(written)
        except FileExistsError:
            continue
        break
    os.replace(made.path, written)
    return written


class trace(contextlib.ContextDecorator):
    """Record what happens in a `with` block, or in a function that this decorates; arguments as of `start_trace`.

    The trace is written where the block fails too.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: ProfileOptions | None = None,
    ) -> None:
        self._arguments = (log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)

    def __enter__(self) -> None:
        start_trace(*self._arguments)

    def __exit__(self, *error: object) -> None:
        stop_trace()


class TraceAnnotation(_profiler.TraceMe):
    """A name for what a `with` block does, in traces; keyword arguments are shown with it.

    Costs a microsecond where nothing is recorded.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: the name is a string, got {name!r} of type {type(name).__name__}")
        super().__init__(name.encode("utf-8", "replace").decode(), **kwargs)


class StepTraceAnnotation(TraceAnnotation):
    """As `TraceAnnotation`, for one step of a loop: `StepTraceAnnotation("train", step_num=i)`."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., R], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., R]:
    """The function with its calls in traces, called `name` or as the function is; a decorator.

    Args:
        func: the function.
        name: how its calls are called; by default its `__qualname__`.
        decorator_kwargs: shown with each call.
    """
    if not callable(func):
        raise TypeError(f"annotate_function: func is a function, got {func!r} of type {type(func).__name__}")
    shown = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or type(func).__name__

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> R:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def device_memory_profile(backend: str | None = None) -> bytes:
    """The memory of the devices by buffer and program, gzipped, in the format that the tool pprof reads.

    Args:
        backend: a platform ("cpu", "cuda"); by default the default one. Arrays on the host are in none.
    """
    return gzip.compress(_profiler.heap_profile(_jaxlib.client(backend)))


def save_device_memory_profile(filename: str | os.PathLike[str], backend: str | None = None) -> None:
    """Write `device_memory_profile(backend)` to a file."""
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Have TensorBoard and others record traces of this process, over a port of this machine.

    Args:
        port: its number.
        requires_backend: start the backend first.

    Raises:
        ValueError: no number of a port, or there is a server.
        OSError: another program has the port.
    """
    global _server
    if not isinstance(port, int) or not 0 < port < 2**16:
        raise ValueError(f"start_server: port is a number from 1 to 65535, got {port!r}")
    with _lock:
        if _server is not None:
            raise ValueError("start_server: this process has a profiler server; stop_server() ends it")
        with socket.socket() as probe:
            try:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("", port))
            except OSError as error:
                raise OSError(error.errno, f"start_server: port {port}: {error.strerror}") from None
        if requires_backend:
            _jaxlib.client()
        _server = _profiler.start_server(port)
        return _server


def stop_server() -> None:
    """End the server.

    Raises:
        ValueError: there is none.
    """
    global _server
    with _lock:
        if _server is None:
            raise ValueError("stop_server: this process has no profiler server; start_server(port) starts one")
        _server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Have traces of this process contain those of another one's server.

    Args:
        pid: the other process.
        port: of its `start_server`.

    Returns:
        A function that undoes it.

    Raises:
        RuntimeError: the other process cannot be reached.
    """
    return _profiler.register_subprocess(pid, port)  # type: ignore[no-any-return]
