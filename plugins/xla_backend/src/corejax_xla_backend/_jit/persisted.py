"""`jit(f, persist=True)`: exported programs on disk, so that a later process runs `f` without tracing it.

The first process traces the function and exports the program, with its constants as leading arguments. Both processes
then run the function that is read from the artifact (`call_exported`), so that the compiled program, too, is found in
the cache on disk. The key of an entry is a digest of all that the trace depends on (`reach`), including the variables
of settings in the environment: a plugin that is loaded while the function is traced may read its settings from them.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from typing import Any

from corejax.extend import Array, Tracer, as_array, stage_closed
from corejax.extend.devices import bound_device
from corejax.extend.messages import drop_oldest, observe, warn_user
from corejax_xla_backend._jit.reach import UnseenError, digest_of
from corejax_xla_backend._jit.traces import MAX_TRACES, Signature, TracedProgram, known_constants
from corejax_xla_backend._log import report
from corejax_xla_backend._several_devices import meshes_of

ORIGIN = "not traced: its exported program is read from the cache on disk"


class PersistedPrograms:
    """The programs of one jitted function that were exported by this process or an earlier one."""

    def __init__(self, jitted: Any) -> None:
        self._jitted = jitted
        self._programs: dict[tuple[Signature, str], TracedProgram | None] = {}  # None: the program is not persisted
        self._warned = False

    def clear(self) -> None:
        """Drop the programs; files do not change."""
        self._programs.clear()

    def find(self, signature: Signature, leaves: Sequence[Any]) -> TracedProgram | None:
        """Return the program of a call: read from the disk, or traced, exported and written.

        The result is None if the program is not persisted. The user is warned of the reason, unless the cache is off.
        """
        if any(isinstance(x, Tracer) for x in leaves) or signature.axes:
            return None
        backend, platform = self._jitted.target()
        if backend.name != "xla":
            return None
        places = [device for x in leaves if type(x) is Array and (device := bound_device(x, backend)) is not None]
        if self._jitted.compile_options.device is None and places:
            platform = getattr(places[0], "platform", None)
        key = signature, platform or backend.platform()
        if key not in self._programs:
            try:
                program = self._read_or_written(*key)
            except UnseenError as error:
                program = None
                self._tell(f"persist=True has no effect, because {error}")
            self._programs.setdefault(key, program)
            drop_oldest(self._programs, MAX_TRACES)
        return self._programs.get(key)

    def _read_or_written(self, signature: Signature, platform: str) -> TracedProgram | None:
        from corejax_xla_backend._xla import disk_cache  # imports jaxlib

        files = disk_cache.private_files()
        if files is None:
            return None
        jitted = self._jitted
        options = jitted.options
        if options.in_shardings is not None or options.out_shardings is not None:
            raise UnseenError("it has in_shardings or out_shardings")
        if any(aval.refinement is not None for aval in signature.avals):
            raise UnseenError("the types of its arguments have shardings")
        key = digest_of(
            function=jitted.fun,
            platform=platform,
            structure=signature.in_tree,
            types=[(aval.str_short(), aval.weak_type) for aval in signature.avals],
            static=signature.static,
            settings=signature.settings,
            environment=sorted(each for each in os.environ.items() if each[0].startswith("COREJAX_")),
        )
        name = f"trace_{jitted.name[:60]}-{key}"
        program = _loaded(disk_cache.read_entry(files, name), signature)
        if program is not None:
            report(observe.Event("persist", jitted.name, (ORIGIN,)))
            return program
        content = _content(jitted.traced(signature), jitted.name, platform)
        disk_cache.write_entry(files, name, content)
        return _loaded(content, signature)

    def _tell(self, message: str) -> None:
        report(observe.Event("persist", self._jitted.name, (message,)))
        if not self._warned:
            self._warned = True
            warn_user(f"jit of {self._jitted.name}: {message}", RuntimeWarning)


def _content(program: TracedProgram, name: str, platform: str) -> bytes:
    """Return the content of an entry: an artifact of the program, its constants, and the result's structure.

    Raises:
        UnseenError: the program cannot be exported, or the result's structure cannot be pickled.
    """
    from corejax_xla_backend.export.exporting import export_program

    consts = [as_array(c) for c in program.consts]
    if program.cells:
        raise UnseenError(f"it uses {program.cells[0]!r}, a reference of an enclosing function")
    if meshes_of(program.closed) or any(c.aval.refinement is not None for c in consts):
        raise UnseenError("it runs on several devices")
    try:
        exported = export_program(name, program.closed, platform)
        return pickle.dumps((exported.serialize(), consts, program.out_tree))
    except (AttributeError, NotImplementedError, TypeError, ValueError, pickle.PicklingError) as error:
        raise UnseenError(str(error)) from None


def _loaded(content: bytes | None, signature: Signature) -> TracedProgram | None:
    """Return the program of an entry; None if the entry is missing or cannot be loaded."""
    from corejax_xla_backend.export.exported import deserialize

    if content is None:
        return None
    try:
        blob, consts, out_tree = pickle.loads(content)
        exported = deserialize(blob)
    except Exception:  # classes of the entry are elsewhere now, for example; the entry is written again
        return None
    if exported.in_avals[len(consts) :] != signature.avals:
        return None
    closed = stage_closed(exported.call, exported.in_avals)
    return TracedProgram(closed, consts, signature.in_tree, out_tree, known_constants(consts, closed), True)
