"""`jit(f).lower(...)` and `.compile()`: the steps of compilation, one by one."""

from __future__ import annotations

from typing import Any

from corejax.extend import ClosedJaxpr, as_array, tree
from corejax_xla_backend import _jaxlib, execution
from corejax_xla_backend.locations import without_locations


class _Stage:
    """A step of compilation: it is what it is for this process, so its copies are itself."""

    name: str

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{type(self).__name__} of {self.name} cannot be pickled: it belongs to this process. Pickle the function "
            "(jit(f), where f can be pickled), and lower and compile it in the other one; lower(...).as_text() is its "
            "StableHLO."
        )


class CompiledFunction(_Stage):
    """An executable for one signature; call it with arrays of that signature."""

    def __init__(self, lowered: Lowered) -> None:
        self.name = lowered.name
        self._lowered = lowered
        self._compiled = execution.compiled(lowered.jaxpr, lowered.name, lowered.backend)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it.

        Raises:
            TypeError: the arguments' types are not those that it was compiled for.
        """
        lowered = self._lowered
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        if in_tree != lowered.in_tree:
            raise TypeError(f"{lowered.name} was compiled for arguments of structure {lowered.in_tree}, got {in_tree}")
        arrays = [as_array(x) for x in (*lowered.consts, *leaves)]
        for i, (x, aval) in enumerate(zip(arrays, lowered.jaxpr.in_avals, strict=True)):
            if x.aval.shape != aval.shape or x.aval.dtype != aval.dtype:
                raise TypeError(
                    f"{lowered.name} was compiled for {aval.str_short()} as argument {i - len(lowered.consts)}, "
                    f"got {x.aval.str_short()}"
                )
        return tree.tree_unflatten(lowered.out_tree, self._compiled.run(arrays))

    def as_text(self) -> str:
        """The program as XLA runs it, in HLO text."""
        return self._compiled.executable.optimized_hlo()  # type: ignore[no-any-return]

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run, by name (`flops`, `bytes accessed`, ...)."""
        return self._compiled.executable.cost_analysis()  # type: ignore[no-any-return]

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, temporaries and code."""
        return self._compiled.executable.memory_analysis()  # type: ignore[no-any-return]


class Lowered(_Stage):
    """A function lowered to StableHLO for one signature.

    Attributes:
        jaxpr: the program; the constants are its leading arguments.
        in_tree, out_tree: structure of `(args, kwargs)` without static arguments, and of the result.
        name: the function's name.
        backend: the platform, None for the default.
    """

    def __init__(
        self,
        jaxpr: ClosedJaxpr,
        consts: list[Any],
        in_tree: Any,
        out_tree: Any,
        name: str,
        backend: str | None,
    ) -> None:
        self.jaxpr = jaxpr
        self.consts = consts
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.name = name
        self.backend = backend
        platform = backend or _jaxlib.default_backend()
        self._text, self.kept, _ = execution.lower(jaxpr, name, platform)

    def as_text(self, *, pretty: bool = True, debug_info: bool = False) -> str:
        """The StableHLO module.

        Args:
            pretty: False gives it in MLIR's generic form, as it was written.
            debug_info: with locations: each operation's name, from named scopes, transformations and the
                primitive, and the user's line.
        """
        text = self._text if debug_info else without_locations(self._text)
        return _jaxlib.module_text(_jaxlib.parse_module(text), debug_info=debug_info) if pretty else text

    def compile(self) -> CompiledFunction:
        """Compile it."""
        return CompiledFunction(self)
