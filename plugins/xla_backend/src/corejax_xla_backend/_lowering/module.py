"""A StableHLO module: functions as text, parsed once by MLIR in C++."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ClosedJaxpr
from corejax_xla_backend._lowering.context import TranslationContext
from corejax_xla_backend._lowering.locations import Locations, without_locations
from corejax_xla_backend._lowering.types import Value, tensor_type

_MAIN = "main"


class ModuleBuilder:
    """A StableHLO module under construction: functions as text, private ones shared between their calls.

    Args:
        platform: the platform that rules are looked up for.
        name: the compiled function's, for the operations' locations.

    Attributes:
        callbacks: Python functions that the program calls, by index.
    """

    def __init__(self, platform: str = "cpu", name: str = "") -> None:
        self.platform = platform
        self.name = name
        self.locations = Locations()
        self.functions: list[str] = []
        self.callbacks: list[Callable[..., Any]] = []
        self._callback_indices: dict[Any, int] = {}
        self._private: dict[int, tuple[str, ClosedJaxpr]] = {}
        self._names = {_MAIN: 1}  # whatever else is called so: XLA starts there

    def fresh_name(self, wanted: str) -> str:
        """A function name that is not taken."""
        wanted = "".join(c if (c.isascii() and c.isalnum()) or c == "_" else "_" for c in wanted) or "f"
        if wanted[0].isdigit():
            wanted = "_" + wanted
        count = self._names.get(wanted, 0)
        self._names[wanted] = count + 1
        return wanted if count == 0 else self.fresh_name(f"{wanted}_{count}")

    def callback(self, key: Any, make: Callable[[], Callable[..., Any]]) -> int:
        """Index of the Python function for a key, made once."""
        index = self._callback_indices.get(key)
        if index is None:
            index = self._callback_indices[key] = len(self.callbacks)
            self.callbacks.append(make())
        return index

    def private_function(self, closed: ClosedJaxpr, name: str, scope: tuple[str, ...] = ()) -> str:
        """Name of the function for a program; written once for each program, with the first call's scope."""
        found = self._private.get(id(closed))
        if found is None:
            symbol = self.fresh_name(name)
            found = self._private[id(closed)] = (symbol, closed)
            ctx = TranslationContext(self, scope=scope)
            args = [Value(f"%arg{i}", v.aval) for i, v in enumerate(closed.jaxpr.invars)]
            self._write("private", symbol, args, ctx, ctx.inline(closed, args))
        return found[0]

    def add_main(self, closed: ClosedJaxpr, kept: Sequence[bool]) -> None:
        """Write the entry point `main`.

        Args:
            closed: the program; its constants are leading arguments.
            kept: which of (constants, arguments) the function takes; the others are not used.
        """
        binders = [*closed.jaxpr.constvars, *closed.jaxpr.invars]
        ctx = TranslationContext(self, scope=(f"jit({self.name})",) if self.name else ())
        vals = [Value(f"%arg{i}", v.aval) for i, v in enumerate(binders)]
        outs = ctx.inline_jaxpr(closed.jaxpr, vals)
        self._write(
            "public",
            _MAIN,
            [v for v, keep in zip(vals, kept, strict=True) if keep],
            ctx,
            outs,
        )

    def _write(
        self,
        visibility: str,
        symbol: str,
        args: Sequence[Value],
        ctx: TranslationContext,
        outs: Sequence[Value],
    ) -> None:
        signature = ", ".join(f"{a.name}: {tensor_type(a.aval)}" for a in args)
        types = ", ".join(tensor_type(o.aval) for o in outs)
        returned = f"{', '.join(o.name for o in outs)} : {types}" if outs else ""
        body = "\n    ".join([*ctx.lines, f"func.return {returned}"])
        self.functions.append(f"  func.func {visibility} @{symbol}({signature}) -> ({types}) {{\n    {body}\n  }}")

    def text(self, name: str, *, locations: bool = False) -> str:
        """The module, with the operations' locations or without."""
        functions = "\n".join(self.functions)
        attributes = "mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32"
        text = f"module @{self.fresh_name(name)} attributes {{{attributes}}} {{\n{functions}\n}}\n"
        return text + "".join(self.locations.lines) if locations else without_locations(text)
