"""`jit(f).lower(...)` and `.compile()`: the steps of compilation, one by one."""

from __future__ import annotations

from typing import Any

from corejax.extend import BackendError, ClosedJaxpr, as_array, backends, tree
from corejax_xla_backend._programs import compiled, run


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
        self._executable = compiled(lowered.jaxpr, lowered.name, *lowered.target)

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
        outs = run(self._executable, lowered.target.backend, arrays, lowered.jaxpr.out_avals)
        return tree.tree_unflatten(lowered.out_tree, outs)

    def as_text(self) -> str:
        """The program as it runs: of XLA, in HLO text."""
        return self._executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """The backend's estimates for one run, by name (XLA's: `flops`, `bytes accessed`, ...)."""
        return dict(self._executable.cost_analysis())

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, temporaries and code."""
        return dict(self._executable.memory_analysis())


class Lowered(_Stage):
    """A function lowered for one signature, by XLA to StableHLO.

    Attributes:
        jaxpr: the program; the constants are its leading arguments.
        in_tree, out_tree: structure of `(args, kwargs)` without static arguments, and of the result.
        name: the function's name.
        target: the backend, and the platform, None for its default.
        lowering: what the backend lowers the program to, None where it has no such step.
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
        self.target = found, platform = backends.find(backend)
        self.lowering = found.lower(jaxpr, name=name, platform=platform) if found.capabilities.lowering else None

    def as_text(self, *, pretty: bool = True, debug_info: bool = False) -> str:
        """The lowered program: of XLA, the StableHLO module.

        Args:
            pretty: False gives it in MLIR's generic form, as it was written.
            debug_info: with locations: each operation's name, from named scopes, transformations and the
                primitive, and the user's line.

        Raises:
            BackendError: the backend does not lower programs.
        """
        if self.lowering is None:
            raise BackendError(
                f"backend {self.target.backend.name!r} compiles programs without lowering them to a text; "
                f"lowered.compile().as_text() shows what runs of {self.name}, lowered.jaxpr what it was made of"
            )
        return self.lowering.as_text(pretty=pretty, debug_info=debug_info)  # type: ignore[no-any-return]

    def compile(self) -> CompiledFunction:
        """Compile it."""
        return CompiledFunction(self)
