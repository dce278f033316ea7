"""Compiled programs that outlive the process: the setting `compilation_cache_dir`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend import config
from corejax.extend.messages import warn_user
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._lowering.locations import without_locations
from corejax_xla_backend._xla.digests import sha256
from corejax_xla_backend._xla.program_files import ProgramFiles
from corejax_xla_backend._xla.recent import recent

ORIGIN = "read from the cache on disk"


class Counts:
    """What this process found in the cache."""

    hits = 0
    misses = 0


_warned: set[str] = set()  # directories


class Compiled(NamedTuple):
    """An executable, and where it is from if it was not compiled now."""

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
    """As `_jaxlib.compile_module` of a module's text; where the same was compiled before, what was made of it then.

    By this process lately (`recent`), or by another one, which wrote it to the disk. Programs that call Python are
    compiled always: what they call is of one process; and so are those that are not to be `cached`. The cache on disk
    is a help and never a hindrance: what goes wrong with its files is a warning, unless the setting
    `raise_persistent_cache_errors` makes it an error.
    """
    options = {"overrides": overrides, "committed": committed, "partitions": partitions}
    if _jaxlib.is_absent(device):
        made = _jaxlib.compile_ahead(
            _jaxlib.parse_module(text), out_avals, partitions, overrides=overrides, callbacks=callbacks
        )
        return Compiled(made, "")
    if callbacks or not cached:
        module = _jaxlib.parse_module(text)
        return Compiled(_jaxlib.compile_module(module, out_avals, device, callbacks=callbacks, **options), "")
    if partitions is not None:  # which know more than XLA is told: names of axes
        return _from_disk(text, out_avals, device, options)
    others = (device, tuple(out_avals), committed, _jaxlib.compilation_fingerprint(device, overrides))
    return Compiled(*recent(text, others, lambda: _from_disk(text, out_avals, device, options)))


def _from_disk(text: str, out_avals: Sequence[Any], device: Any, options: dict[str, Any]) -> Compiled:
    """Read from the disk, where the settings name a directory, or compiled and written there."""
    files = current_files()
    if files is None:
        return Compiled(_jaxlib.compile_module(_jaxlib.parse_module(text), out_avals, device, **options), "")
    name = entry_name(text, device, options["overrides"], options["partitions"])
    found = _read(files, name, text, out_avals, device, options)
    if found is not None:
        Counts.hits += 1
        return Compiled(found, ORIGIN)
    Counts.misses += 1
    started = time.perf_counter()
    executable = _jaxlib.compile_module(_jaxlib.parse_module(text), out_avals, device, **options)
    if time.perf_counter() - started >= config.persistent_cache_min_compile_time_secs:
        _write(files, name, executable)
    return Compiled(executable, "")


def current_files() -> ProgramFiles | None:
    """The directory that the settings name, None where they name none."""
    if not config.compilation_cache_dir or not config.enable_compilation_cache or not config.compilation_cache_max_size:
        return None
    return ProgramFiles(config.compilation_cache_dir, config.compilation_cache_max_size)


def entry_name(text: str, device: Any, overrides: Sequence[tuple[str, Any]] = (), partitions: Any = None) -> str:
    """The program's name, and a digest of all that its executable depends on: lines of the user's are no part of it."""
    digest = sha256()
    for part in (_jaxlib.compilation_fingerprint(device, overrides, partitions), without_locations(text).encode()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return f"{_module_name(text)[:60]}-{digest.hexdigest()}"


def forget_warnings() -> None:
    """Warn again of what goes wrong."""
    _warned.clear()


def _module_name(text: str) -> str:
    found = re.match(r"module @(\w+)", text)
    return found[1] if found else "main"


def _read(
    files: ProgramFiles, name: str, text: str, out_avals: Sequence[Any], device: Any, options: dict[str, Any]
) -> _jaxlib.Executable | None:
    try:
        data = files.read(name)
    except OSError as error:
        _warn(files, "read", error, "Programs are compiled instead.")
        return None
    if data is None:
        return None
    try:
        return _jaxlib.load(data, out_avals, device, name=_module_name(text), **options)
    except (RuntimeError, ValueError):  # jaxlib cannot make anything of it; it may lack a kernel, too
        files.discard(name)
        if config.raise_persistent_cache_errors:
            raise
        return None


def _write(files: ProgramFiles, name: str, executable: _jaxlib.Executable) -> None:
    try:
        data = executable.serialize()
    except RuntimeError:  # XLA's: a platform or program that cannot be serialised
        return
    if len(data) < config.persistent_cache_min_entry_size_bytes:
        return
    try:
        files.write(name, data)
    except OSError as error:
        _warn(files, "written", error, "The program is compiled and runs; the next process compiles it again.")


def _warn(files: ProgramFiles, verb: str, error: OSError, consequence: str) -> None:
    """Once for each directory.

    Raises:
        OSError: the setting `raise_persistent_cache_errors` is on.
    """
    if config.raise_persistent_cache_errors:
        raise error
    directory = str(files.directory)
    if directory in _warned:
        return
    _warned.add(directory)
    warn_user(
        f"the cache of compiled programs in {directory!r} cannot be {verb}: {error}. {consequence} Make "
        "room or mend its permissions, or name another directory (the setting compilation_cache_dir, "
        "COREJAX_COMPILATION_CACHE_DIR); an empty name turns the cache off.",
        RuntimeWarning,
    )
