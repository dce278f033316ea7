"""The text of a compiled program, as far as `debug.collectives` and the profiler read it.

XLA writes an instruction a line: `%name = type opcode(operands), attribute=value, ...`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

_TEXT = r'"((?:[^"\\]|\\.)*)"'
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{$")
_INSTRUCTION = re.compile(r"^  (ROOT )?%?([\w.\-]+) = (.*?)(?<=[\]})]) ([a-z][\w\-]*)\(")
_CALLS = re.compile(
    r"\b(body|condition|to_apply|calls|true_computation|false_computation|branch_computations|called_computations)="
    r"(?:\{([^}]*)\}|%?([\w.\-]+))"
)
_TYPE = re.compile(r"\b([a-z]\w*)\[([\d,<=]*)\]")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")
_OP_NAME = re.compile(rf"\bop_name={_TEXT}")
_SOURCE = re.compile(rf"\bsource_file={_TEXT}(?: .*?)?\bsource_line=(\d+)")
_EXPLICIT = re.compile(r"\{((?:\{[\d,]*\},?)*)\}")
_IOTA = re.compile(r"\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_OVER_MESH = re.compile(r"mesh\[([^\]]*)\] \{([^}]*)\}")


class Instruction(NamedTuple):
    """One line.

    Attributes:
        number: of the line.
        name: the result's.
        opcode: what it does.
        type: its result's.
        text: the rest of the line, from the operands on.
        root: whether its result is the computation's.
    """

    number: int
    name: str
    opcode: str
    type: str
    text: str
    root: bool

    def results(self) -> str:
        """The type of what it computes: that of one that is only begun has its operands in front."""
        if self.opcode in ("all-gather-start", "collective-permute-start"):
            return _items(self.type)[1]
        return self.type

    def called(self, role: str) -> str:
        """The computation that it calls in a role; empty if none."""
        return next((name or names for found, names, name in _CALLS.findall(self.text) if found == role), "")

    @property
    def op_name(self) -> str:
        """The operation that it was made for."""
        found = _OP_NAME.search(self.text)
        return _plain(found[1]) if found else ""


class Origin(NamedTuple):
    """What an instruction of a compiled program was made of.

    Attributes:
        name: `jit(f)/layer1/dot_general`.
        source: `file.py:3 (f)`, or "".
        fused: the names of all that XLA fused into it, in order.
    """

    name: str
    source: str
    fused: tuple[str, ...] = ()


class Module:
    """The computations of a program's HLO, each a list of instructions.

    Attributes:
        num_partitions: how many devices it is for.
    """

    def __init__(self, text: str) -> None:
        self.computations: dict[str, list[Instruction]] = {}
        self._entry, self._head = "", text[:80]
        self._tables: dict[str, list[str]] = {}
        lines = text.splitlines()
        found = re.search(r"\bnum_partitions=(\d+)", lines[0] if lines else "")
        self.num_partitions = int(found[1]) if found else 1
        inside = table = None
        for number, line in enumerate(lines):
            if inside is not None:
                if line.startswith("}"):
                    inside = None
                elif match := _INSTRUCTION.match(line):
                    root, name, kind, opcode = match.groups()
                    inside.append(Instruction(number, name, opcode, kind, line[match.end() - 1 :], bool(root)))
            elif match := _COMPUTATION.match(line):
                inside = self.computations[match[2]] = []
                self._entry = match[2] if match[1] else self._entry
            elif line in ("FileNames", "FileLocations", "StackFrames", "FunctionNames"):
                table = self._tables[line] = [""]
            elif table is not None and line:
                table.append(line)

    def times(self) -> dict[str, int | None]:
        """How often a run goes through each computation that it comes to; None if that is not known.

        Raises:
            ValueError: it is no HLO text of a whole program.
        """
        if not self._entry:
            raise ValueError(f"debug.collectives: this is no text of a compiled program: {self._head!r}")
        found: dict[str, int | None] = {}

        def visit(name: str, times: int | None) -> None:
            before = found.get(name, 0)
            found[name] = None if times is None or before is None else before + times
            for one in self.computations.get(name, ()):
                trips: int | None = 1
                if one.opcode == "while":
                    known = _TRIPS.search(one.text)
                    trips = int(known[1]) if known else None
                for _, names, single in _CALLS.findall(one.text):
                    for called in [single] if single else re.findall(r"[\w.\-]+", names):
                        visit(called, None if times is None or trips is None else times * trips)

        visit(self._entry, 1)
        return {name: times for name, times in found.items() if name in self.computations}

    def root_opcode(self, computation: str) -> str:
        """What computes a computation's result."""
        return next((x.opcode for x in self.computations.get(computation, ()) if x.root), "")

    def line(self, one: Instruction) -> str:
        """Where the user's program has what an instruction was made for, `step.py:12`; empty if that is not known."""
        path, line, _ = self._place(one)
        file = re.split(r"[/\\]", path)[-1]
        return f"{file}:{line}" if line else ""

    def origins(self) -> Iterator[tuple[str, Origin]]:
        """The names of the instructions that have a name of the user's, and what they were made of."""
        for one in itertools.chain.from_iterable(self.computations.values()):
            if one.op_name:
                path, line, function = self._place(one)
                source = f"{path}:{line}" + (f" ({function})" if function else "") if line else ""
                yield one.name, Origin(one.op_name, source, self._fused(one))

    def _fused(self, one: Instruction) -> tuple[str, ...]:
        """The user's names of the instructions that an instruction calls."""
        called = [x for x in self.computations.get(one.called("calls"), ()) if x.op_name]
        return tuple(dict.fromkeys(name for x in called for name in self._fused(x) or (x.op_name,)))

    def _place(self, one: Instruction) -> tuple[str, int, str]:
        """The file, line and function of what an instruction was made for; empty if they are not known."""
        frame = _FRAME.search(one.text)
        location = frame and self._field("StackFrames", int(frame[1]), "file_location_id")
        if location:
            names = [
                _plain(self._tables[table][self._field("FileLocations", location, name)].partition(" ")[2][1:-1])
                for table, name in (("FileNames", "file_name_id"), ("FunctionNames", "function_name_id"))
            ]
            return names[0], self._field("FileLocations", location, "line"), names[1]
        source = _SOURCE.search(one.text)
        return (_plain(source[1]), int(source[2]), "") if source else ("", 0, "")

    def _field(self, table: str, row: int, name: str) -> int:
        rows = self._tables.get(table, [])
        found = re.search(rf"\b{name}=(\d+)", rows[row]) if row < len(rows) else None
        return int(found[1]) if found else 0


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def types_of(text: str) -> tuple[tuple[str, ...], int]:
    """The arrays of a type, and their bytes."""
    listed, total = [], 0
    for dtype, sizes in _TYPE.findall(text):
        shape = [int(x.lstrip("<=")) for x in sizes.split(",") if x]
        listed.append(f"{dtype}[{','.join(map(str, shape))}]")
        total += math.prod(shape) * _bits(dtype) // 8
    return tuple(listed), total


def _bits(dtype: str) -> int:
    if dtype in ("token", "opaque"):
        return 0
    digits = re.search(r"\d+", dtype)
    return int(digits[0]) if digits else 8  # pred


def _items(text: str) -> list[str]:
    """What a tuple's type is of: at its outermost commas."""
    found, depth = [""], 0
    for letter in text[1:-1]:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def device_groups(text: str, count: int) -> np.ndarray[Any, Any] | None:
    """The devices of each group, a row each; None of a form that is not known, or of groups of several sizes.

    They are written out, or as a permutation of all numbers, or as axes of a mesh.
    """
    text = text.partition("replica_groups=")[2]
    if match := _EXPLICIT.match(text):
        rows = [[int(x) for x in row.split(",") if x] for row in re.findall(r"\{([\d,]*)\}", match[1])]
        if not rows:
            return np.arange(count).reshape(1, -1)
        return np.array(rows) if len({len(row) for row in rows}) == 1 else None
    if match := _IOTA.match(text):
        numbers = np.arange(int(match[1]) * int(match[2])).reshape([int(x) for x in match[3].split(",")])
        if match[4]:
            numbers = numbers.transpose([int(x) for x in match[4].split(",")])
        return numbers.reshape(int(match[1]), int(match[2]))
    if match := _OVER_MESH.match(text):
        sizes = dict(re.findall(r"'([^']*)'=(\d+)", match[1]))
        named = re.findall(r"'([^']*)'", match[2])
        if "device_ids" in match[1] or re.search(r"'[^']*':\(", match[2]) or not set(named) <= set(sizes):
            return None
        numbers = np.arange(math.prod(map(int, sizes.values()))).reshape([int(x) for x in sizes.values()])
        order = list(sizes)
        within = [order.index(name) for name in named]
        rest = [i for i in range(len(order)) if i not in within]
        size = math.prod(int(sizes[name]) for name in named)
        return numbers.transpose(rest + within).reshape(-1, size)
    return None


def source_target_pairs(text: str) -> np.ndarray[Any, Any]:
    """Sender and receiver of each transfer, a row each."""
    found = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", text)
    rows = re.findall(r"(\d+),(\d+)\}", found[1]) if found else []
    return np.array(rows, np.int64).reshape(-1, 2)
