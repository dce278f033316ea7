"""A StableHLO module under construction: functions as text, which MLIR's C++ parser parses once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, ShapedArray
from corejax_xla_backend._callbacks import Failures
from corejax_xla_backend._lowering.chains import Reads
from corejax_xla_backend._lowering.locations import Locations
from corejax_xla_backend._lowering.meshes import SYMBOL, Meshes
from corejax_xla_backend._lowering.regions import TOKEN
from corejax_xla_backend._lowering.types import Value, tensor_type

MAIN = "main"
_NONE: Mapping[Any, Any] = MappingProxyType({})


class ModuleBuilder:
    """A StableHLO module under construction: functions as text; all calls of a program share one private function.

    Args:
        platform: the platform that translation rules are looked up for.
        name: the compiled function's name, for the operations' locations.
        devices: the devices of a program over several, in order.

    Attributes:
        private: the private functions of programs; see `Inlining`.
        repeated: the values of programs that several loops compute; see `chains`.
        callbacks: Python functions that the program calls, by index.
        failures: exceptions of the callbacks of a program over several devices; None on one device, where a callback's
            exception ends the program at once.
        meshes: the meshes that the module declares.
        partitioners: partitioners of the calls of `partitioned_calls`; they must live until the module is compiled.
        is_sharded: whether arguments are sharded over devices.
        elementwise: the nesting depth of elementwise primitives' bodies that are being lowered.
        opaque: the number of operations so far that XLA cannot partition.
        manual: the mesh and the axes of the enclosing manual region, one element of which the next operations compute;
            None outside such a region.
    """

    def __init__(self, platform: str = "cpu", name: str = "", devices: tuple[Any, ...] = ()) -> None:
        self.platform = platform
        self.name = name
        self.meshes = Meshes(devices)
        self.manual: tuple[Any, tuple[Any, ...]] | None = None
        self.locations = Locations()
        self.functions: list[str] = []
        self.private: dict[Any, tuple[str, bool, int, int, ClosedJaxpr]] = {}
        self.callbacks: list[Callable[..., Any]] = []
        self.failures = Failures() if len(devices) > 1 else None
        self.partitioners: list[Any] = []
        self.is_sharded = False
        self.elementwise = 0
        self.opaque = 0
        self._callback_indices: dict[Any, int] = {}
        self._spliced: dict[int, tuple[str, Any]] = {}
        self.repeated: dict[Jaxpr, Reads] = {}
        self._identities: dict[ShapedArray, str] = {}
        self._names = {MAIN: 1, SYMBOL: 1}  # reserved: XLA starts at `main`
        self._tokens = itertools.count()
        self._channels = itertools.count(1)

    def fresh_name(self, wanted: str) -> str:
        """Return a function name that is not taken, made from the wanted one."""
        wanted = "".join(c if (c.isascii() and c.isalnum()) or c == "_" else "_" for c in wanted) or "f"
        if wanted[0].isdigit():
            wanted = "_" + wanted
        count = self._names.get(wanted, 0)
        self._names[wanted] = count + 1
        return wanted if count == 0 else self.fresh_name(f"{wanted}_{count}")

    def new_token(self) -> Value:
        """Return a token with a fresh name, for ordered effects that take the token from the enclosing function."""
        return Value(f"%t{next(self._tokens)}", TOKEN)

    def enter(self, mesh: Any, axes: tuple[Any, ...]) -> None:
        """Enter a region that is manual over some axes of a mesh; a mesh of None leaves all manual regions."""
        self.manual = None if mesh is None else (mesh, axes)
        self.meshes.manual = mesh is not None and set(axes) == set(mesh.axis_names)

    def new_channel(self) -> int:
        """Return a fresh channel number for a collective operation."""
        return next(self._channels)

    def callback(self, key: Any, make: Callable[[], Callable[..., Any]]) -> int:
        """Return the index of a callback; `make` creates the Python function once for each key."""
        index = self._callback_indices.get(key)
        if index is None:
            index = self._callback_indices[key] = len(self.callbacks)
            self.callbacks.append(make())
        return index

    def part_builder(self) -> ModuleBuilder:
        """Return a builder for the program that one device runs in place of an operation; it shares the callbacks."""
        inner = ModuleBuilder(self.platform, self.name, self.meshes.devices)
        inner.callbacks, inner._callback_indices = self.callbacks, self._callback_indices
        inner.failures = self.failures
        return inner

    @property
    def stores_values(self) -> bool:
        """Whether values at the end of long chains are stored; see `chains`.

        They are not in the body of an elementwise primitive, which is one loop, and in a program over several devices,
        because a call that stores a value is not partitioned.
        """
        return self.platform == "cpu" and not self.elementwise and self.meshes.count == 1

    def identity(self, aval: ShapedArray) -> str:
        """Return the name of the function that returns its argument."""
        name = self._identities.get(aval)
        if name is None:
            name = self._identities[aval] = self.fresh_name("identity")
            x = Value("%arg0", aval)
            self.add_function("private", name, [x], [], [x])
        return name

    def spliced(self, owner: Any, functions: Callable[[Callable[[str], str]], list[str]]) -> str:
        """Add functions that are text already, once for each owner, and return the name of the first.

        Args:
            owner: the object that the functions belong to, by identity.
            functions: called with a function from wanted to fresh names; returns the functions with fresh names.
        """
        entry = self._spliced.get(id(owner))
        if entry is None:
            names: list[str] = []

            def fresh(wanted: str) -> str:
                names.append(self.fresh_name(wanted))
                return names[-1]

            self.functions += [f"  {text}" for text in functions(fresh)]
            entry = self._spliced[id(owner)] = (names[0], owner)
        return entry[0]

    def add_function(
        self,
        visibility: str,
        symbol: str,
        args: Sequence[Value],
        lines: Sequence[str],
        outs: Sequence[Value],
        attributes: Mapping[str, str] = _NONE,
        result_attributes: Sequence[str] = (),
    ) -> None:
        """Add a function.

        Args:
            visibility: "public" or "private".
            symbol: its name.
            args: its arguments.
            lines: its operations.
            outs: its results.
            attributes: name of an argument -> text of its attribute dictionary, after a space.
            result_attributes: the same text for each result, or empty.
        """
        signature = ", ".join(f"{a.name}: {tensor_type(a.aval)}{attributes.get(a.name, '')}" for a in args)
        types = ", ".join(tensor_type(o.aval) for o in outs)
        returned = f"{', '.join(o.name for o in outs)} : {types}" if outs else ""
        if any(result_attributes):
            types = ", ".join(tensor_type(o.aval) + text for o, text in zip(outs, result_attributes, strict=True))
        body = "\n    ".join([*lines, f"func.return {returned}"])
        self.functions.append(f"  func.func {visibility} @{symbol}({signature}) -> ({types}) {{\n    {body}\n  }}")

    def text(self, name: str) -> str:
        """Return the text of the module, with the operations' locations."""
        functions = "\n".join([*self.meshes.lines, *self.functions])
        attributes = f"mhlo.num_replicas = 1 : i32, mhlo.num_partitions = {self.meshes.count} : i32"
        module = f"module @{self.fresh_name(name)} attributes {{{attributes}}} {{\n{functions}\n}}\n"
        return module + "".join(self.locations.lines)
