"""`corejax.profiler`: profiles of time and memory.

    with corejax.profiler.trace("profile"):
        step(params, batch).block_until_ready()

writes `profile/plugins/profile/TIME/HOST.trace.json.gz`, which https://ui.perfetto.dev opens, and `HOST.xplane.pb` for
TensorBoard and `ProfileData`. In the JSON trace, XLA's operations have the program's names (named scopes,
transformations, the primitive) and the user's lines.
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
ProfileLine = _profiler.ProfileLine
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
    "ProfileLine",
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
    """The events that a trace records.

    Attributes:
        python_tracer_level: 1 (the default) records calls of Python functions; 0 makes the trace faster and smaller.
        host_tracer_level: 0 records nothing on the host, 1 annotations only, 2 (the default) also XLA's steps, 3
            everything.
    """


class _Running(NamedTuple):
    """The trace that is being recorded; a process records at most one."""

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
    """Start to record a trace of the process; `stop_trace` ends the recording.

    Args:
        log_dir: directory that the trace is written to; it is created if necessary.
        create_perfetto_link: whether `stop_trace` prints a link to https://ui.perfetto.dev, serves the trace on port
            9001 of this machine, and waits until the page has read it.
        create_perfetto_trace: whether to also write the trace under JAX's name, `perfetto_trace.json.gz`.
        profiler_options: the events to record.

    Raises:
        RuntimeError: this module or another profiler in the process is recording a trace.
        OSError: the directory cannot be written to.
    """
    global _running
    directory = os.fspath(log_dir)
    with _lock:
        if _running is not None:
            raise RuntimeError(
                f"start_trace: a trace for {_running.log_dir!r} is being recorded already; stop_trace() ends it. A "
                "process can record one trace at a time"
            )
        if _profiler.TraceMe.is_enabled():
            raise RuntimeError(
                "start_trace: another profiler, perhaps jax's, is recording in this process; a process can record one "
                "trace at a time"
            )
        _make_directory(directory)
        _jaxlib.client()  # a session records only devices that have started before it
        session = _profiler.ProfilerSession(ProfileOptions() if profiler_options is None else profiler_options)
        _running = _Running(session, directory, create_perfetto_trace or create_perfetto_link, create_perfetto_link)


def _make_directory(directory: str) -> None:
    """Create the directory and test that it is writable, before hours of recording are lost."""
    try:
        os.makedirs(directory, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise OSError(error.errno, f"start_trace cannot write to its log_dir ({error.strerror})", directory) from None


def stop_trace() -> None:
    """End the trace that is being recorded, and write it to its directory.

    The recording ends even if an error is raised.

    Raises:
        RuntimeError: no trace is being recorded, or the trace is empty.
        OSError: the directory cannot be written to any more.
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
        _remove(temporary)  # an interrupt may have arrived in the first `finally`
    if running.link:
        from corejax_xla_backend._perfetto_server import serve

        serve(os.path.join(written, _PERFETTO))


def _remove(directory: str) -> None:
    """Remove a directory, without `shutil.rmtree`, which turns an interrupt into an OSError."""
    for place, _, files in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):
            for file in files:
                os.remove(os.path.join(place, file))
            os.rmdir(place)


def _lost(running: _Running, error: Exception) -> Exception:
    """Return the error for a trace that could not be written."""
    text = f"stop_trace: the trace for {running.log_dir!r} is lost: {error}"
    return OSError(error.errno, text) if isinstance(error, OSError) else RuntimeError(text)


def _export(running: _Running, recorded: bytes, temporary: str) -> str:
    """Write a trace to a temporary directory, rename its operations, move it to its place, and return the place."""
    try:
        os.makedirs(temporary)
        running.session.export(recorded, temporary)
    except (RuntimeError, OSError) as error:
        raise _lost(running, error) from None
    (exported,) = os.scandir(os.path.join(temporary, "plugins", "profile"))
    for name in os.listdir(exported.path):
        if name.endswith(".trace.json.gz"):
            events = name_operations(os.path.join(exported.path, name))
            if running.perfetto:
                with gzip.open(os.path.join(exported.path, _PERFETTO), "wb", compresslevel=6) as file:
                    file.write(events)
    place = os.path.join(running.log_dir, "plugins", "profile")
    os.makedirs(place, exist_ok=True)
    for number in itertools.count(1):  # XLA's name is the time in seconds, which may be taken
        written = os.path.join(place, exported.name if number == 1 else f"{exported.name}_{number}")
        try:
            os.mkdir(written)
        except FileExistsError:
            continue
        break
    os.replace(exported.path, written)
    return written


class trace(contextlib.ContextDecorator):
    """Record a trace of a `with` block or of a decorated function; the arguments are those of `start_trace`.

    The trace is written even if the block raises an exception.
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
    """A name for a `with` block in traces, which also show the keyword arguments.

    It costs a microsecond if nothing is recorded.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"{type(self).__name__}: the name must be a string, got {name!r} of type {type(name).__name__}"
            )
        super().__init__(name.encode("utf-8", "replace").decode(), **kwargs)


class StepTraceAnnotation(TraceAnnotation):
    """A `TraceAnnotation` for one step of a loop: `StepTraceAnnotation("train", step_num=i)`."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., R], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., R]:
    """Return a function that shows its calls in traces; a decorator.

    Args:
        func: the function.
        name: the name of its calls; by default its `__qualname__`.
        **decorator_kwargs: values that traces show with each call.
    """
    if not callable(func):
        raise TypeError(f"annotate_function: func must be a function, got {func!r} of type {type(func).__name__}")
    shown = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or type(func).__name__

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> R:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return a profile of the devices' memory by buffer and program, gzipped, in the format of the tool pprof.

    Args:
        backend: a platform ("cpu", "cuda"); by default the default platform. No profile has arrays on the host.
    """
    return gzip.compress(_profiler.heap_profile(_jaxlib.client(backend)))


def save_device_memory_profile(filename: str | os.PathLike[str], backend: str | None = None) -> None:
    """Write `device_memory_profile(backend)` to a file."""
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server through which TensorBoard and other tools can record traces of this process.

    Args:
        port: number of the port.
        requires_backend: whether to start the backend first.

    Raises:
        ValueError: `port` is not the number of a port, or this process has a server.
        OSError: another program uses the port.
    """
    global _server
    if not isinstance(port, int) or not 0 < port < 2**16:
        raise ValueError(f"start_server: port must be a number from 1 to 65535, got {port!r}")
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
    """Stop the server.

    Raises:
        ValueError: this process has no server.
    """
    global _server
    with _lock:
        if _server is None:
            raise ValueError("stop_server: this process has no profiler server; start_server(port) starts one")
        _server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Include the traces of another process, through its server, in the traces of this process.

    Args:
        pid: the other process.
        port: the port of its `start_server`.

    Returns:
        A function that ends this.

    Raises:
        RuntimeError: the other process cannot be reached.
    """
    return _profiler.register_subprocess(pid, port)  # type: ignore[no-any-return]  # jaxlib has no types
