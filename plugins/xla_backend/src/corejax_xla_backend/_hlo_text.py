"""A reader of HLO text, for `debug.collectives` and the profiler.

XLA writes one instruction per line: `%name = type opcode(operands), attribute=value, ...`.
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
    """One instruction.

    Attributes:
        number: number of its line.
        name: name of its result.
        opcode: XLA's operation.
        type: type of its result.
        text: the rest of the line, from the operands on.
        root: whether its result is the computation's result.
    """

    number: int
    name: str
    opcode: str
    type: str
    text: str
    root: bool

    def results(self) -> str:
        """Return the type of the results; an asynchronous start has the operands' types in front, which are dropped."""
        if self.opcode in ("all-gather-start", "collective-permute-start"):
            return _items(self.type)[1]
        return self.type

    def called(self, role: str) -> str:
        """Return the computation that the instruction calls in a role such as "to_apply"; empty if it has none."""
        return next((name or names for key, names, name in _CALLS.findall(self.text) if key == role), "")

    @property
    def op_name(self) -> str:
        """The name of the user's operation that the instruction comes from."""
        match = _OP_NAME.search(self.text)
        return _unescape(match[1]) if match else ""


class Origin(NamedTuple):
    """The user's operation that an instruction of a compiled program comes from.

    Attributes:
        name: `jit(f)/layer1/dot_general`.
        source: `file.py:3 (f)`, or "".
        fused: the names of all operations that XLA fused into it, in order.
    """

    name: str
    source: str
    fused: tuple[str, ...] = ()


class Module:
    """The computations of a program's HLO text.

    Attributes:
        computations: the instructions of each computation, by name.
        num_partitions: the number of devices that the program runs on.
    """

    def __init__(self, text: str) -> None:
        self.computations: dict[str, list[Instruction]] = {}
        self._entry, self._head = "", text[:80]
        self._tables: dict[str, list[str]] = {}
        lines = text.splitlines()
        partitions = re.search(r"\bnum_partitions=(\d+)", lines[0] if lines else "")
        self.num_partitions = int(partitions[1]) if partitions else 1
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
        """Return how often a run executes each computation that it reaches; None if the number is not known.

        Raises:
            ValueError: the text is not the HLO of a complete program.
        """
        if not self._entry:
            raise ValueError(f"debug.collectives: this is not the text of a compiled program: {self._head!r}")
        counts: dict[str, int | None] = {}

        def visit(name: str, times: int | None) -> None:
            before = counts.get(name, 0)
            counts[name] = None if times is None or before is None else before + times
            for one in self.computations.get(name, ()):
                trips: int | None = 1
                if one.opcode == "while":
                    known = _TRIPS.search(one.text)
                    trips = int(known[1]) if known else None
                for _, names, single in _CALLS.findall(one.text):
                    for called in [single] if single else re.findall(r"[\w.\-]+", names):
                        visit(called, None if times is None or trips is None else times * trips)

        visit(self._entry, 1)
        return {name: times for name, times in counts.items() if name in self.computations}

    def root_opcode(self, computation: str) -> str:
        """Return the opcode of the instruction that computes a computation's result."""
        return next((x.opcode for x in self.computations.get(computation, ()) if x.root), "")

    def line(self, one: Instruction) -> str:
        """Return the user's line that an instruction comes from, such as `step.py:12`; empty if it is not known."""
        path, line, _ = self._place(one)
        file = re.split(r"[/\\]", path)[-1]
        return f"{file}:{line}" if line else ""

    def origins(self) -> Iterator[tuple[str, Origin]]:
        """Yield name and origin of each instruction that comes from an operation of the user's."""
        for one in itertools.chain.from_iterable(self.computations.values()):
            if one.op_name:
                path, line, function = self._place(one)
                source = f"{path}:{line}" + (f" ({function})" if function else "") if line else ""
                yield one.name, Origin(one.op_name, source, self._fused(one))

    def _fused(self, one: Instruction) -> tuple[str, ...]:
        """Return the names of the user's operations in the computation that a fusion calls."""
        called = [x for x in self.computations.get(one.called("calls"), ()) if x.op_name]
        return tuple(dict.fromkeys(name for x in called for name in self._fused(x) or (x.op_name,)))

    def _place(self, one: Instruction) -> tuple[str, int, str]:
        """Return the user's file, line and function that an instruction comes from; empty if they are not known."""
        frame = _FRAME.search(one.text)
        location = frame and self._field("StackFrames", int(frame[1]), "file_location_id")
        if location:
            names = [
                _unescape(self._tables[table][self._field("FileLocations", location, name)].partition(" ")[2][1:-1])
                for table, name in (("FileNames", "file_name_id"), ("FunctionNames", "function_name_id"))
            ]
            return names[0], self._field("FileLocations", location, "line"), names[1]
        source = _SOURCE.search(one.text)
        return (_unescape(source[1]), int(source[2]), "") if source else ("", 0, "")

    def _field(self, table: str, row: int, name: str) -> int:
        """Return a number from a row of one of the text's tables; 0 if it is missing."""
        rows = self._tables.get(table, [])
        field = re.search(rf"\b{name}=(\d+)", rows[row]) if row < len(rows) else None
        return int(field[1]) if field else 0


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def types_of(text: str) -> tuple[tuple[str, ...], int]:
    """Return the array types in the text of a type, and their bytes."""
    listed, total = [], 0
    for dtype, sizes in _TYPE.findall(text):
        shape = [int(x.lstrip("<=")) for x in sizes.split(",") if x]
        listed.append(f"{dtype}[{','.join(map(str, shape))}]")
        total += math.prod(shape) * _bits(dtype) // 8
    return tuple(listed), total


def _bits(dtype: str) -> int:
    """Return the bits of an element of one of XLA's dtypes."""
    if dtype in ("token", "opaque"):
        return 0
    digits = re.search(r"\d+", dtype)
    return int(digits[0]) if digits else 8  # booleans (pred)


def _items(text: str) -> list[str]:
    """Split the text of a tuple's type at its outermost commas."""
    items, depth = [""], 0
    for letter in text[1:-1]:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            items.append("")
        else:
            items[-1] += letter
    return items


def device_groups(text: str, count: int) -> np.ndarray[Any, Any] | None:
    """Return the devices of each group of a collective, one row per group.

    XLA lists the groups, or writes them as a permutation of all numbers, or as axes of a mesh. The result is None if
    the form is unknown or the groups differ in size.
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
        axes = re.findall(r"'([^']*)'", match[2])
        if "device_ids" in match[1] or re.search(r"'[^']*':\(", match[2]) or not set(axes) <= set(sizes):
            return None
        numbers = np.arange(math.prod(map(int, sizes.values()))).reshape([int(x) for x in sizes.values()])
        order = list(sizes)
        within = [order.index(name) for name in axes]
        rest = [i for i in range(len(order)) if i not in within]
        size = math.prod(int(sizes[name]) for name in axes)
        return numbers.transpose(rest + within).reshape(-1, size)
    return None


def source_target_pairs(text: str) -> np.ndarray[Any, Any]:
    """Return sender and receiver of each transfer of a collective permute, one row per transfer."""
    pairs = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", text)
    rows = re.findall(r"(\d+),(\d+)\}", pairs[1]) if pairs else []
    return np.array(rows, np.int64).reshape(-1, 2)
