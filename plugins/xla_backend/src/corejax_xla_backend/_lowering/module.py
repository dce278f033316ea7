"""A StableHLO module: functions as text, parsed once by MLIR in C++."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from corejax.extend import ClosedJaxpr, ShapedArray
from corejax_xla_backend._callbacks import Failures
from corejax_xla_backend._lowering.locations import Locations
from corejax_xla_backend._lowering.meshes import SYMBOL, Meshes
from corejax_xla_backend._lowering.regions import TOKEN
from corejax_xla_backend._lowering.types import Value, tensor_type

MAIN = "main"
_NONE: Mapping[Any, Any] = MappingProxyType({})


class ModuleBuilder:
    """A StableHLO module under construction: functions as text, private ones shared between their calls.

    Args:
        platform: the platform that rules are looked up for.
        name: the compiled function's, for the operations' locations.
        devices: of a program over several, in order.

    Attributes:
        private: the private functions of programs; see `Inlining`.
        callbacks: Python functions that the program calls, by index.
        failures: what these raise, where it is over several devices; None where each raises it at once.
        meshes: the meshes that it names.
        partitioners: what partitions its calls of `partitioned_calls`, to be kept until it is compiled.
        spread: whether arguments are split over devices.
        elementwise: how many elementwise primitives' bodies are written, one inside of the other.
        opaque: how many operations were written that XLA cannot partition.
        manual: the mesh, and the axes of it, that what is written now is written for one element of; None outside.
    """

    def __init__(self, platform: str = "cpu", name: str = "", devices: tuple[Any, ...] = ()) -> None:
        self.platform = platform
        self.name = name
        self.meshes = Meshes(devices)
        self.manual: tuple[Any, tuple[Any, ...]] | None = None
        self.locations = Locations()
        self.functions: list[str] = []
        self.private: dict[Any, tuple[str, bool, int, ClosedJaxpr]] = {}
        self.callbacks: list[Callable[..., Any]] = []
        self.failures = Failures() if len(devices) > 1 else None
        self.partitioners: list[Any] = []
        self.spread = False
        self.elementwise = 0
        self.opaque = 0
        self._callback_indices: dict[Any, int] = {}
        self._spliced: dict[int, tuple[str, Any]] = {}
        self._identities: dict[ShapedArray, str] = {}
        self._names = {MAIN: 1, SYMBOL: 1}  # whatever else is called so: XLA starts there
        self._tokens = itertools.count()
        self._channels = itertools.count(1)

    def fresh_name(self, wanted: str) -> str:
        """A function name that is not taken."""
        wanted = "".join(c if (c.isascii() and c.isalnum()) or c == "_" else "_" for c in wanted) or "f"
        if wanted[0].isdigit():
            wanted = "_" + wanted
        count = self._names.get(wanted, 0)
        self._names[wanted] = count + 1
        return wanted if count == 0 else self.fresh_name(f"{wanted}_{count}")

    def new_token(self) -> Value:
        """What ordered effects begin with where the token comes from around: a name of its own."""
        return Value(f"%t{next(self._tokens)}", TOKEN)

    def enter(self, mesh: Any, axes: tuple[Any, ...]) -> None:
        """Write for one element of some axes of a mesh from now on; None: for the whole program."""
        self.manual = None if mesh is None else (mesh, axes)
        self.meshes.manual = mesh is not None and set(axes) == set(mesh.axis_names)

    def new_channel(self) -> int:
        """A number for one more operation that devices do together."""
        return next(self._channels)

    def callback(self, key: Any, make: Callable[[], Callable[..., Any]]) -> int:
        """Index of the Python function for a key, made once."""
        index = self._callback_indices.get(key)
        if index is None:
            index = self._callback_indices[key] = len(self.callbacks)
            self.callbacks.append(make())
        return index

    def of_part(self) -> ModuleBuilder:
        """A builder of the program that one device runs in the place of an operation; of the same Python functions."""
        inner = ModuleBuilder(self.platform, self.name, self.meshes.devices)
        inner.callbacks, inner._callback_indices = self.callbacks, self._callback_indices
        inner.failures = self.failures
        return inner

    def identity(self, aval: ShapedArray) -> str:
        """Name of the function that gives its argument back."""
        found = self._identities.get(aval)
        if found is None:
            found = self._identities[aval] = self.fresh_name("identity")
            x = Value("%arg0", aval)
            self.add_function("private", found, [x], [], [x])
        return found

    def spliced(self, owner: Any, functions: Callable[[Callable[[str], str]], list[str]]) -> str:
        """Name of the first of some functions that are text already; added once for each owner.

        Args:
            owner: what they are of, by identity.
            functions: gives them, with names that the function which it is given has made of wanted ones.
        """
        found = self._spliced.get(id(owner))
        if found is None:
            names: list[str] = []

            def fresh(wanted: str) -> str:
                names.append(self.fresh_name(wanted))
                return names[-1]

            self.functions += [f"  {text}" for text in functions(fresh)]
            found = self._spliced[id(owner)] = (names[0], owner)
        return found[0]

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
        """Add a function, "public" or "private".

        `attributes` has for the name of an argument its attribute dictionary, after a space, `result_attributes` the
        same for each result; they are empty if there are none.
        """
        signature = ", ".join(f"{a.name}: {tensor_type(a.aval)}{attributes.get(a.name, '')}" for a in args)
        types = ", ".join(tensor_type(o.aval) for o in outs)
        returned = f"{', '.join(o.name for o in outs)} : {types}" if outs else ""
        if any(result_attributes):
            types = ", ".join(tensor_type(o.aval) + text for o, text in zip(outs, result_attributes, strict=True))
        body = "\n    ".join([*lines, f"func.return {returned}"])
        self.functions.append(f"  func.func {visibility} @{symbol}({signature}) -> ({types}) {{\n    {body}\n  }}")

    def text(self, name: str) -> str:
        """The module, with the operations' locations."""
        functions = "\n".join([*self.meshes.lines, *self.functions])
        attributes = f"mhlo.num_replicas = 1 : i32, mhlo.num_partitions = {self.meshes.count} : i32"
        module = f"module @{self.fresh_name(name)} attributes {{{attributes}}} {{\n{functions}\n}}\n"
        return module + "".join(self.locations.lines)
