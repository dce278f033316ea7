"""XLA's profiler: sessions, annotations, files, and what the instructions of live programs are called."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ._client import started_clients
from ._interrupts import uninterrupted

with uninterrupted():
    from jaxlib import _profile_data, _profiler

ProfileData = _profile_data.ProfileData
ProfileEvent = _profile_data.ProfileEvent
ProfileLine = _profile_data.ProfileLine
ProfilePlane = _profile_data.ProfilePlane
ProfileOptions = _profiler.ProfileOptions
ProfilerServer = _profiler.ProfilerServer
ProfilerSession = _profiler.ProfilerSession
TraceMe = _profiler.TraceMe
register_subprocess = _profiler.register_subprocess
start_server = _profiler.start_server

_TEXT = r'"((?:[^"\\]|\\.)*)"'
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([^\s(]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([^\s=]+) = (.*)")
_METADATA = re.compile(r"\bmetadata=\{(.*)")
_CALLS = re.compile(r"\bcalls=%?([^\s,]+)")
_OP_NAME = re.compile(rf"\bop_name={_TEXT}")
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")
_SOURCE = re.compile(rf"\bsource_file={_TEXT}(?: .*?)?\bsource_line=(\d+)")
_FILE_OR_FUNCTION = re.compile(rf"^(\d+) {_TEXT}$", re.MULTILINE)
_LOCATION = re.compile(r"^(\d+) \{file_name_id=(\d+) function_name_id=(\d+) line=(\d+)", re.MULTILINE)
_STACK_FRAME = re.compile(r"^(\d+) \{file_location_id=(\d+)", re.MULTILINE)
_ESCAPE = re.compile(r"\\(.)")


class Instruction(NamedTuple):
    """What an instruction of a compiled program was made of.

    Attributes:
        name: `jit(f)/layer1/dot_general`.
        source: `file.py:3 (f)`, or "".
        fused: the names of all that XLA fused into it, in order.
    """

    name: str
    source: str
    fused: tuple[str, ...] = ()


def heap_profile(client: Any) -> bytes:
    """The memory of a client's devices by buffer, in pprof's format."""
    return bytes(client.heap_profile())


def live_instructions(modules: Collection[str]) -> dict[tuple[str, str], Instruction | None]:
    """(program, instruction) -> what it was made of, of compiled programs of these names that are still there.

    None where programs of one name have instructions of one name that are different.
    """
    found: dict[tuple[str, str], Instruction | None] = {}
    for client in started_clients():
        for executable in client.live_executables():
            for module in executable.hlo_modules():
                if module.name in modules:
                    for name, instruction in instructions_of(module.to_string()):
                        key = (module.name, name)
                        found[key] = instruction if found.get(key, instruction) == instruction else None
    return found


def instructions_of(text: str) -> Iterator[tuple[str, Instruction]]:
    """The instructions of a program in HLO text that have a name of the user's."""
    frames = _stack_frames(text)
    parts: dict[str, dict[str, None]] = {}  # names of each computation, in order; fused ones come before their use
    names: dict[str, None] = {}
    for line in text.splitlines():
        computation = _COMPUTATION.match(line)
        found = _INSTRUCTION.match(line)
        if computation is not None and found is None:
            names = parts.setdefault(computation[1], {})
        elif found is not None:
            instruction = _instruction(found[2], frames, parts)
            if instruction is not None:
                names.update(dict.fromkeys(instruction.fused or (instruction.name,)))
                yield found[1], instruction


def _instruction(text: str, frames: dict[str, str], parts: dict[str, dict[str, None]]) -> Instruction | None:
    """What the text behind an instruction's name says of it; None where that is nothing."""
    metadata = _METADATA.search(text)
    name = _OP_NAME.search(metadata[1]) if metadata else None
    if metadata is None or name is None:
        return None
    frame, place, calls = _FRAME.search(metadata[1]), _SOURCE.search(metadata[1]), _CALLS.search(text)
    source = frames.get(frame[1], "") if frame else f"{_plain(place[1])}:{place[2]}" if place else ""
    return Instruction(_plain(name[1]), source, tuple(parts.get(calls[1], ())) if calls else ())


def _stack_frames(text: str) -> dict[str, str]:
    """The places that instructions refer to by number, from the tables at the beginning of a program's text."""
    head = text.partition("\n%")[0].partition("\nENTRY")[0]
    files = dict(_FILE_OR_FUNCTION.findall(_table(head, "FileNames")))
    functions = dict(_FILE_OR_FUNCTION.findall(_table(head, "FunctionNames")))
    places = {
        number: f"{_plain(files.get(file, '?'))}:{line} ({_plain(functions.get(function, '?'))})"
        for number, file, function, line in _LOCATION.findall(_table(head, "FileLocations"))
    }
    return {number: places.get(place, "") for number, place in _STACK_FRAME.findall(_table(head, "StackFrames"))}


def _table(head: str, name: str) -> str:
    return head.partition(f"\n{name}\n")[2].partition("\n\n")[0]


def _plain(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)
