"""The cache of compiled programs on disk: its directory, the keys of its entries, and its errors.

An entry is machine code, so its directory must belong to the user alone. The key of an entry is a digest of everything
that its executable depends on: the program without source lines, XLA's options, jaxlib, the processor, and the versions
of the installed plugins, because a program may call their kernels.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from corejax.extend import config
from corejax.extend.messages import warn_user
from corejax.extend.plugins import plugin_records
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._lowering.locations import without_locations
from corejax_xla_backend._xla.digests import sha256
from corejax_xla_backend._xla.program_files import ProgramFiles, current_files
from corejax_xla_backend._xla.recent import recent

ORIGIN = "read from the cache on disk"


class Counts:
    """The number of cache hits and misses of this process."""

    hits = 0
    misses = 0


_warned: set[str] = set()  # directories that the user was warned about


class Compiled(NamedTuple):
    """An executable and its origin, which is empty if it was compiled now."""

    executable: _jaxlib.Executable | _jaxlib.AheadProgram
    origin: str


def compile_text(
    text: str,
    out_avals: Sequence[Any],
    device: Any,
    *,
    callbacks: Sequence[Callable[..., Any]] = (),
    overrides: Sequence[tuple[str, Any]] = (),
    committed: bool = False,
    partitions: Any = None,
    cached: bool = True,
) -> Compiled:
    """Compile the text of a module, or return the executable of an equal program that was compiled before.

    The program may have been compiled recently by this process (`recent`), or by another one, which wrote it to the
    disk. Programs that call Python functions of this process are always compiled, and so are programs with
    `cached=False`. Errors of the cache's files are warnings, unless the setting `raise_persistent_cache_errors` is on.
    """
    options = {"overrides": overrides, "committed": committed, "partitions": partitions}
    if _jaxlib.is_absent(device):
        ahead = _jaxlib.compile_ahead(
            _jaxlib.parse_module(text), out_avals, partitions, overrides=overrides, callbacks=callbacks
        )
        return Compiled(ahead, "")
    if callbacks or not cached:
        module = _jaxlib.parse_module(text)
        return Compiled(_jaxlib.compile_module(module, out_avals, device, callbacks=callbacks, **options), "")
    if partitions is not None:  # partitions have names of axes, which the text lacks: not in the cache of the process
        return _from_disk(text, out_avals, device, options)
    others = (device, tuple(out_avals), committed, _jaxlib.compilation_fingerprint(device, overrides))
    return Compiled(*recent(text, others, lambda: _from_disk(text, out_avals, device, options)))


def _from_disk(text: str, out_avals: Sequence[Any], device: Any, options: dict[str, Any]) -> Compiled:
    """Read the program from the disk, or compile it and write it to the disk."""
    files = private_files()
    if files is None:
        return Compiled(_jaxlib.compile_module(_jaxlib.parse_module(text), out_avals, device, **options), "")
    name = entry_name(text, device, options["overrides"], options["partitions"])
    loaded = _read(files, name, text, out_avals, device, options)
    if loaded is not None:
        Counts.hits += 1
        return Compiled(loaded, ORIGIN)
    Counts.misses += 1
    started = time.perf_counter()
    executable = _jaxlib.compile_module(_jaxlib.parse_module(text), out_avals, device, **options)
    if time.perf_counter() - started >= config.persistent_cache_min_compile_time_secs:
        _write(files, name, executable)
    return Compiled(executable, "")


def private_files() -> ProgramFiles | None:
    """Return the directory of the cache; None if the cache is off, or if others can write to the directory."""
    files = current_files()
    return files if files is not None and _is_private(files) else None


def _is_private(files: ProgramFiles) -> bool:
    """Return whether only the user can write to the directory; if others can, warn once."""
    try:
        reason = files.shared_with()
    except OSError as error:
        _warn(files, "read", error, "Programs are compiled instead.")
        return False
    if reason:
        _warn_once(
            files,
            f"the cache of compiled programs in {str(files.directory)!r} is not used: {reason}, and programs in it "
            "are machine code. Make the directory your own (chmod 700), choose another one (the setting "
            "compilation_cache_dir), or switch the cache off (COREJAX_COMPILATION_CACHE=off).",
        )
    return not reason


def entry_name(text: str, device: Any, overrides: Sequence[tuple[str, Any]] = (), partitions: Any = None) -> str:
    """Return the program's name with a digest of everything that its executable depends on, without source lines."""
    digest = sha256()
    fingerprint = _jaxlib.compilation_fingerprint(device, overrides, partitions)
    for part in (fingerprint, _plugin_versions(), without_locations(text).encode()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return f"{_module_name(text)[:60]}-{digest.hexdigest()}"


@cache
def _plugin_versions() -> bytes:
    """Return the names and versions of all installed plugins."""
    return "\n".join(sorted(f"{record.name} {record.version}" for record in plugin_records(load=False))).encode()


def forget_warnings() -> None:
    """Allow a second warning about each directory."""
    _warned.clear()


def _module_name(text: str) -> str:
    """Return the name of a module from its text."""
    head = re.match(r"module @(\w+)", text)
    return head[1] if head else "main"


def read_entry(files: ProgramFiles, name: str) -> bytes | None:
    """Return the content of an entry; None if there is no entry, or the entry is damaged or cannot be read."""
    try:
        return files.read(name)
    except OSError as error:
        _warn(files, "read", error, "Programs are compiled instead.")
        return None


def write_entry(files: ProgramFiles, name: str, data: bytes) -> None:
    """Write an entry."""
    try:
        files.write(name, data)
    except OSError as error:
        _warn(files, "written", error, "The program is compiled and runs; the next process compiles it again.")


def _read(
    files: ProgramFiles, name: str, text: str, out_avals: Sequence[Any], device: Any, options: dict[str, Any]
) -> _jaxlib.Executable | None:
    """Return the executable of an entry; None if there is no entry, or the entry cannot be used."""
    data = read_entry(files, name)
    if data is None:
        return None
    try:
        return _jaxlib.load(data, out_avals, device, name=_module_name(text), **options)
    except (RuntimeError, ValueError):  # jaxlib cannot load the entry, or a kernel is missing
        files.discard(name)
        if config.raise_persistent_cache_errors:
            raise
        return None


def _write(files: ProgramFiles, name: str, executable: _jaxlib.Executable) -> None:
    """Write an executable to the cache, if it can be serialised and is large enough."""
    try:
        data = executable.serialize()
    except RuntimeError:  # XLA cannot serialise the program, or any program of the platform
        return
    if len(data) >= config.persistent_cache_min_entry_size_bytes:
        write_entry(files, name, data)


def _warn(files: ProgramFiles, verb: str, error: OSError, consequence: str) -> None:
    """Report an error of the file system, once per directory.

    The user chose a directory in order to have a cache there, so the user is warned. The default directory may be in a
    read-only home or on a full disk; this is only logged.

    Raises:
        OSError: the setting `raise_persistent_cache_errors` is on.
    """
    if config.raise_persistent_cache_errors:
        raise error
    message = f"the cache of compiled programs in {str(files.directory)!r} cannot be {verb}: {error}. {consequence}"
    if config.compilation_cache_dir == "auto":
        logging.getLogger("corejax").debug(message)
        return
    _warn_once(
        files,
        f"{message} Make room or fix its permissions, or choose another directory (the setting compilation_cache_dir, "
        "COREJAX_COMPILATION_CACHE_DIR); an empty name turns the cache off.",
    )


def _warn_once(files: ProgramFiles, text: str) -> None:
    """Warn the user, once per directory."""
    directory = str(files.directory)
    if directory not in _warned:
        _warned.add(directory)
        warn_user(text, RuntimeWarning)
