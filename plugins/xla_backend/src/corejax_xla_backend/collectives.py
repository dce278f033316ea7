"""`debug.collectives`: the communication between devices in a compiled program, read from its HLO.

See https://openxla.org/xla/operation_semantics for the operations, and `_hlo_text` for the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import tree
from corejax_xla_backend._hlo_text import Instruction, Module, device_groups, source_target_pairs, types_of
from corejax_xla_backend._jit.stages import Compiled

KINDS = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "reduce-scatter",
)


class Collective(NamedTuple):
    """One collective operation.

    Attributes:
        kind: XLA's name, such as "all-reduce".
        types: types of its results on each device, as XLA writes them: "f32[8,32]".
        nbytes: bytes of these results.
        times: how often a run of the program executes it; None in a loop with an unknown number of iterations. All
            branches of a conditional are counted.
        axes: the axes of the mesh along which devices communicate; None if the groups are not along axes.
        devices: the number of devices that communicate with each other.
        reduction: the operation that reduces, such as "add"; empty if nothing is reduced.
        op_name: name of the user's operation that it comes from.
        line: the user's line, such as "step.py:12"; empty if it is not known.
    """

    kind: str
    types: tuple[str, ...]
    nbytes: int
    times: int | None
    axes: tuple[str, ...] | None
    devices: int
    reduction: str
    op_name: str
    line: str


class Collectives(tuple[Collective, ...]):
    """The collectives of a program; printed as a table."""

    __slots__ = ()

    def of(self, kind: str | None = None, axes: str | Sequence[str] | None = None) -> Collectives:
        """Return the collectives of a kind, or along exactly these axes, or both.

        Args:
            kind: XLA's name, such as "all-reduce"; None for all kinds.
            axes: a name or names of axes; None for all collectives.

        Raises:
            ValueError: XLA has no collective of that kind.
        """
        if kind is not None and kind not in KINDS:
            raise ValueError(f"of: kind must be one of {', '.join(KINDS)}, got {kind!r}")
        names = {axes} if isinstance(axes, str) else set(axes or ())
        return Collectives(
            x
            for x in self
            if kind in (None, x.kind) and (axes is None or (x.axes is not None and set(x.axes) == names))
        )

    @property
    def times(self) -> int | None:
        """The number of collectives in a run; None if it is not known."""
        return _sum(x.times for x in self)

    @property
    def nbytes(self) -> int | None:
        """The bytes of the results of all collectives in a run, on each device; None if the number is not known."""
        return _sum(None if x.times is None else x.times * x.nbytes for x in self)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (tuple(self),)

    def __str__(self) -> str:
        if not self:
            return "no collectives"
        rows = [("collective", "along", "times", "bytes", "of", "line", "for"), *map(_row, self)]
        widths = [max(len(row[i]) for row in rows) for i in range(7)]
        total = "an unknown number" if self.times is None or self.nbytes is None else f"{self.times}"
        size = "" if self.nbytes is None else f", {self.nbytes:,} bytes on each device"

        def line(row: Sequence[str]) -> str:
            cells = enumerate(zip(row, widths, strict=True))
            return "  ".join(x.rjust(w) if i in (2, 3) else x.ljust(w) for i, (x, w) in cells).rstrip()

        return "\n".join([*map(line, rows), f"{total} in a run{size}"])

    def __repr__(self) -> str:
        return f"Collectives({list(self)!r})"


def _sum(numbers: Iterator[int | None]) -> int | None:
    """Return the sum of numbers; None if one of them is None."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def _row(x: Collective) -> tuple[str, ...]:
    """Return the cells of a collective's row in the table."""
    kind = x.kind if x.reduction in ("", "add") else f"{x.kind} ({x.reduction})"
    along = f"groups of {x.devices}" if x.axes is None else ", ".join(x.axes)
    listed = ", ".join(x.types[:3]) + (f" and {len(x.types) - 3} more" if len(x.types) > 3 else "")
    times = "?" if x.times is None else str(x.times)
    name = x.op_name if len(x.op_name) <= 48 else f"{x.op_name[:47]}…"
    return kind, along, times, f"{x.nbytes:,}", listed, x.line, name


def collectives(program: Any, mesh: Any = None) -> Collectives:
    """Return the collective operations of a compiled program, as XLA's partitioner inserted them.

    Args:
        program: the result of `jit(f).lower(...).compile()`, or its text (`as_text()`).
        mesh: the mesh that names the axes; by default the mesh of the program's shardings.

    Returns:
        A tuple with one item for each operation, in the order of the text, which prints as a table. An asynchronous
        operation counts once; an operation in a loop counts once per iteration.

    Raises:
        TypeError: `program` is neither a compiled program nor a text.
    """
    if isinstance(program, Compiled):
        text, named_mesh = program.as_text(), _mesh_of(program) if mesh is None else mesh
    elif isinstance(program, str):
        text, named_mesh = program, mesh
    else:
        raise TypeError(
            f"debug.collectives: program must be the result of jit(f).lower(...).compile(), or its as_text(), got "
            f"{program!r} of type {type(program).__name__}"
        )
    return read_collectives(text, () if named_mesh is None else tuple(named_mesh.shape_tuple))


def _mesh_of(compiled: Compiled) -> Any:
    """Return the mesh of the first sharding over one in a compiled program, or None."""
    for shardings in (compiled.input_shardings, compiled.output_shardings):
        for sharding in tree.tree_leaves(shardings):
            if hasattr(sharding, "spec"):
                return sharding.mesh
    return None


def read_collectives(text: str, axes: Sequence[tuple[str, int]]) -> Collectives:
    """Return the collectives in a program's text; `axes` are the names and sizes of the mesh's axes."""
    module = Module(text)
    numbered = []
    for computation, times in module.times().items():
        for one in module.computations[computation]:
            kind = one.opcode.removesuffix("-start")
            if kind in KINDS and not one.opcode.endswith("-done"):
                numbered.append((one.number, _collective(module, one, kind, times, axes)))
    return Collectives(x for _, x in sorted(numbered, key=lambda pair: pair[0]))


def _collective(
    module: Module, one: Instruction, kind: str, times: int | None, axes: Sequence[tuple[str, int]]
) -> Collective:
    """Return the collective of an instruction."""
    types, nbytes = types_of(one.results())
    if kind == "collective-permute":
        pairs = source_target_pairs(one.text)
        along, devices = _axes_of_pairs(pairs, axes), 2
    else:
        groups = device_groups(one.text, module.num_partitions)
        along = None if groups is None else _axes_of_groups(groups, axes)
        devices = 0 if groups is None else groups.shape[1]
    reduction = module.root_opcode(one.called("to_apply")) if kind in ("all-reduce", "reduce-scatter") else ""
    return Collective(kind, types, nbytes, times, along, devices, reduction, one.op_name, module.line(one))


def _axes_of_groups(groups: np.ndarray[Any, Any], axes: Sequence[tuple[str, int]]) -> tuple[str, ...] | None:
    """Return the axes that vary within each group; None if a group lacks devices that differ in these axes only."""
    sizes = [size for _, size in axes]
    if not axes or groups.size != math.prod(sizes):
        return None
    first = np.stack(np.unravel_index(groups[0], sizes))
    varying = [i for i, where in enumerate(first) if len(set(where.tolist())) > 1]
    if math.prod(sizes[i] for i in varying) != groups.shape[1]:
        return None
    rest = [i for i in range(len(sizes)) if i not in varying]
    wanted = np.arange(groups.size).reshape(sizes).transpose(rest + varying).reshape(groups.shape)
    actual = np.sort(groups, axis=1)
    same = np.array_equal(actual[np.argsort(actual[:, 0])], wanted[np.argsort(wanted[:, 0])])
    return tuple(axes[i][0] for i in varying) if same else None


def _axes_of_pairs(pairs: np.ndarray[Any, Any], axes: Sequence[tuple[str, int]]) -> tuple[str, ...] | None:
    """Return the axes in which any sender and receiver differ; None if the mesh does not have all the devices."""
    sizes = [size for _, size in axes]
    if not axes or (pairs.size and pairs.max() >= math.prod(sizes)):
        return None
    where = np.stack(np.unravel_index(pairs, sizes))
    return tuple(name for (name, _), x in zip(axes, where, strict=True) if np.any(x[:, 0] != x[:, 1]))
