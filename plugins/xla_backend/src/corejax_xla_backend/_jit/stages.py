"""The stages of compilation, one by one: `jit(f).trace(...)`, `.lower()` and `.compile()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from corejax.extend import (
    Array,
    Backend,
    BackendError,
    ClosedJaxpr,
    DebugInfo,
    ShapedArray,
    Tracer,
    as_array,
    bind_consts,
    fun_name,
    get_aval,
    tree,
)
from corejax.extend.devices import CompileOptions, RepeatableCall, Target, bound_device, check_values, checks_values
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import Cell
from corejax.extend.types import ShapeDtypeStruct
from corejax_xla_backend._jit.callables import run_donating, unblock_new_calls
from corejax_xla_backend._jit.options import compiler_flags
from corejax_xla_backend._jit.traces import InTurn, TracedProgram, keyed_cells
from corejax_xla_backend._parts import flat_options, flat_program
from corejax_xla_backend._programs import compiled, known_options, run
from corejax_xla_backend._several_devices import assign_devices, place_program
from corejax_xla_backend.sharding import SingleDeviceSharding, check_fits
from corejax_xla_backend.sharding_constraint import as_sharding
from corejax_xla_backend.structures import public
from corejax_xla_backend.xla_call import xla_call_p

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Wrapped(Protocol[P, R]):
    """A jitted function, for annotations: callable, and with methods for the stages of compilation."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function; the first call with a signature traces and compiles it."""

    def __get__(self, instance: Any, owner: Any = None, /) -> Wrapped[..., R]:
        """Bind a method's `self`."""

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for arguments, or for their types."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower the function for arguments, or for their types."""

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the types of the results."""

    def clear_cache(self) -> None:
        """Drop all traces and compiled programs."""


class ArgInfo(NamedTuple):
    """Shape and dtype of one leaf of a program's arguments, and whether the leaf is donated."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    donated: bool


class Stage:
    """The base class of the stages of compilation.

    A stage is immutable and belongs to this process: copying returns the stage itself, and pickling raises TypeError.

    Attributes:
        name: the function's name.
        donate_argnums: positions of donated arguments.
    """

    def __init__(
        self, name: str, program: TracedProgram, options: CompileOptions, donate_argnums: tuple[int, ...]
    ) -> None:
        self.name = name
        self.donate_argnums = donate_argnums
        self._program, self._options = program, options

    @property
    def in_tree(self) -> Any:
        """Structure of `(args, kwargs)` without static arguments."""
        return public(self._program.in_tree)

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return public(self._program.out_tree)

    @property
    def in_avals(self) -> Any:
        """Types of the arguments, `(args, kwargs)`."""
        return tree.tree_unflatten(self._program.in_tree, self._argument_avals())

    @property
    def out_avals(self) -> Any:
        """Types of the result, in its structure."""
        out_tree = self._program.out_tree
        return tree.tree_unflatten(out_tree, self._program.closed.out_avals[: out_tree.num_leaves])

    @property
    def args_info(self) -> Any:
        """Shape and dtype of the arguments, and whether they are donated: `(args, kwargs)` of `ArgInfo`s."""
        avals = self._argument_avals()
        donated = self._options.donated[len(self._program.consts) :] or [False] * len(avals)
        infos = [ArgInfo(a.shape, a.dtype, flag) for a, flag in zip(avals, donated, strict=False)]
        return tree.tree_unflatten(self._program.in_tree, infos)

    @property
    def out_info(self) -> Any:
        """Shape and dtype of the result: `ShapeDtypeStruct`s in its structure."""
        return self._program.out_info()

    def _argument_avals(self) -> Sequence[ShapedArray]:
        consts = len(self._program.consts)
        return self._program.closed.in_avals[consts : consts + self._program.in_tree.num_leaves]

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{type(self).__name__} of {self.name} cannot be pickled: it belongs to this process. Pickle the function "
            "(jit(f), if f can be pickled), and lower and compile it in the other process; lower(...).as_text() is "
            "its StableHLO."
        )

    def __repr__(self) -> str:
        arguments = ", ".join(a.str_short() for a in self._argument_avals())
        results = ", ".join(a.str_short() for a in self._program.closed.out_avals)
        return f"<{type(self).__name__} {self.name}({arguments}) -> ({results})>"


def places_of_arguments(
    name: str, program: TracedProgram, backend: Backend, leaves: Sequence[Any], cells: Sequence[Cell]
) -> list[Any]:
    """Return the device or sharding of each argument, or None; the values of cells are the last arguments.

    An array has the device that it is bound to; a `ShapeDtypeStruct` has its `sharding`.
    """

    def place(x: Any) -> Any:
        if type(x) is Array:
            return bound_device(x, backend)
        attribute = getattr(x, "sharding", None) if isinstance(x, ShapeDtypeStruct) else None
        if attribute is None:
            return None
        sharding = as_sharding(f"jit of {name}: sharding", attribute)
        check_fits(f"jit of {name}: sharding of an argument", sharding, x.shape)
        return sharding.device_tuple[0] if isinstance(sharding, SingleDeviceSharding) else sharding

    return [place(x) for x in (*program.consts, *leaves, *[cell.get() for cell in program.cells_of(cells)])]


class Traced(Stage):
    """A function traced for one signature.

    Attributes:
        fun: the function.
        target: the backend that compiles the program, and the platform (None for the backend's default).
    """

    def __init__(
        self,
        program: TracedProgram,
        fun: Callable[..., Any],
        target: Target,
        options: CompileOptions,
        donate_argnums: tuple[int, ...],
    ) -> None:
        super().__init__(fun_name(fun), program, options, donate_argnums)
        self.fun = fun
        self.target = target

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return self.name

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program with its constants."""
        return bind_consts(self._program.closed, self._program.consts)

    def arg_names(self) -> list[str]:
        """Return a name for each leaf of the arguments."""
        return DebugInfo(self.fun, "jit", self._program.in_tree).arg_names()

    @api_boundary
    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Lower the program to what the backend compiles; for XLA, to StableHLO.

        Args:
            lowering_platforms: one platform to lower for ("cpu", "cuda"), which this machine need not have; by default
                the platform that the function is compiled for.

        Raises:
            ValueError: `lowering_platforms` has several platforms.
        """
        target = self.target
        if lowering_platforms is not None:
            if isinstance(lowering_platforms, str) or len(lowering_platforms) != 1:
                raise ValueError(
                    f"lower of {self.name}: lowering_platforms must be a tuple of one platform, such as ('cpu',), got "
                    f"{lowering_platforms!r}; corejax.export exports for several platforms"
                )
            target = Target(target.backend, lowering_platforms[0])
        return Lowered(self, target)


class Lowered(Stage):
    """A function lowered for one signature; for XLA, to StableHLO.

    Attributes:
        jaxpr: the program; the constants are its leading arguments.
        consts: values of the constants.
        target: the backend, and the platform (None for the backend's default).
        lowering: the backend's lowered program; None if the backend does not lower programs.
    """

    def __init__(self, traced: Traced, target: Target) -> None:
        super().__init__(traced.name, traced._program, traced._options, traced.donate_argnums)
        self.traced = traced
        self.jaxpr, self.consts = self._program.closed, self._program.consts
        self.target = target
        backend, platform = target
        self.lowering: Any = None
        if backend.capabilities.lowering:
            more = known_options(flat_options(self._options, self.jaxpr), self.name, backend)
            program = flat_program(self.jaxpr)
            self.lowering = backend.lower(program, name=self.name, platform=platform, **more)

    def as_text(self, dialect: str | None = None, *, pretty: bool = True, debug_info: bool = False) -> str:
        """Return the text of the lowered program; for XLA, of the StableHLO module.

        Args:
            dialect: "stablehlo", or "hlo" for XLA's own language, before optimisation.
            pretty: whether to print operations in their pretty form; False returns MLIR's generic form.
            debug_info: whether to print locations: each operation's name, from named scopes, transformations and the
                primitive, and the user's line.

        Raises:
            BackendError: the backend does not lower programs.
            ValueError: `dialect` is unknown.
        """
        if _is_hlo(self.name, dialect):
            return self._lowering().hlo().as_hlo_text()  # type: ignore[no-any-return]  # jaxlib has no types
        text: str = self._lowering().as_text(pretty=pretty, debug_info=debug_info)
        return text

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Return the lowered program as jaxlib's object: an MLIR module, or with "hlo" an XLA computation.

        Raises:
            BackendError: the backend does not lower programs.
            ValueError: `dialect` is unknown.
        """
        return self._lowering().hlo() if _is_hlo(self.name, dialect) else self._lowering().module()

    def cost_analysis(self) -> dict[str, float]:
        """Return the backend's estimates for one run by name (`flops`, `bytes accessed`), before optimisation."""
        return self._lowering().cost_analysis()  # type: ignore[no-any-return]  # the backend's Lowering

    def _lowering(self) -> Any:
        if self.lowering is None:
            raise BackendError(
                f"backend {self.target.backend.name!r} compiles programs without lowering them to a text; "
                f"lowered.compile().as_text() shows the compiled program of {self.name}, lowered.jaxpr its jaxpr"
            )
        return self.lowering

    @api_boundary
    def compile(
        self,
        compiler_options: Mapping[str, Any] | None = None,
        *,
        device_assignment: Sequence[Any] | None = None,
    ) -> Compiled:
        """Compile the program.

        Args:
            compiler_options: further options of the backend by name, as in `jit`.
            device_assignment: the devices, row by row, for a program that is lowered for a mesh without devices
                (`AbstractMesh`). Devices of a topology (`experimental.topologies`) need not be attached.

        Raises:
            RuntimeError: the program is lowered for a mesh without devices, and `device_assignment` is missing.
            ValueError: the devices differ in kind or number from those that the program is lowered for.
        """
        flags = dict(self._options.flags) | dict(compiler_flags(self.name, compiler_options))
        options = assign_devices(self.name, self.jaxpr, self._options, device_assignment)
        return Compiled(self, options._replace(flags=tuple(sorted(flags.items()))))


def _is_hlo(name: str, dialect: str | None) -> bool:
    """Return whether a dialect is "hlo"; raise ValueError if the dialect is unknown."""
    if dialect not in (None, "stablehlo", "hlo"):
        raise ValueError(f"{name}: the dialects are 'stablehlo' and 'hlo', got {dialect!r}")
    return dialect == "hlo"


class Compiled(Stage):
    """An executable for one signature; call it with arrays of that signature."""

    def __init__(self, lowered: Lowered, options: CompileOptions) -> None:
        super().__init__(lowered.name, lowered._program, options, lowered.donate_argnums)
        self._lowered = lowered
        self._executable = compiled(lowered.jaxpr, lowered.name, lowered.target, options)
        self._consts = [as_array(c) for c in lowered.consts]
        backend = lowered.target.backend
        self._call: Callable[..., Any] = api_boundary(lambda *args, **kwargs: self._miss(*args, **kwargs)[0])
        if backend.capabilities.dispatcher:
            self._call = backend.dispatcher(self.name, self._miss)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            TypeError: the arguments do not have the types that the program was compiled for.
        """
        if not any(self._options.donated):
            return self._call(*args, **kwargs)
        leaves = tree.tree_leaves((args, kwargs))
        flags = self._options.donated[len(self._consts) :]
        donated = [x for x, flag in zip(leaves, flags, strict=False) if flag]
        return run_donating(self._call, args, kwargs, donated, self.name)

    call = __call__

    def _miss(self, *args: Any, **kwargs: Any) -> tuple[Any, RepeatableCall | None]:
        """Check and run a call; return the result, and the call for the dispatcher to cache, or None."""
        keyed, arguments, _ = keyed_cells((args, kwargs))
        leaves, in_tree = tree.tree_flatten(keyed)
        if in_tree != (wanted := self._program.in_tree):
            raise TypeError(f"{self.name} was compiled for arguments of structure {wanted}, got {in_tree}")
        names = self._lowered.traced.arg_names()
        for name, x, aval in zip(names, leaves, self._argument_avals(), strict=True):
            self._check(name, x, aval)
        backend, cells = self._lowered.target.backend, self._program.cells_of(arguments)
        with InTurn(cells):
            arrays = [*self._consts, *map(as_array, leaves), *[cell.take() for cell in cells]]
            place_program(self._program.closed, self.name, backend, self._options, arrays)
            if self._executable.calls_python:
                unblock_new_calls(self._call)
            outs = run(self._executable, backend, arrays, self._program.closed.out_avals)
            result = self._program.result(outs, cells)
        if cells:
            return result, None
        if not checks_values():
            return result, RepeatableCall(self._executable, self._consts, args, kwargs, result)
        params = {"call_jaxpr": self._program.closed, "name": self.name, "backend": None}
        check_values(xla_call_p, arrays, params, outs)
        return result, None  # values are checked at every call, so that the dispatcher must not repeat it

    def _check(self, name: str, x: Any, aval: ShapedArray) -> None:
        """Raise TypeError if an argument is a tracer, or not of the type that the program was compiled for."""
        if isinstance(x, Tracer):
            raise TypeError(
                f"{self.name} was compiled for one signature, and cannot be transformed: argument {name} is {x!r}. "
                "Transform the function first, and compile the result"
            )
        actual = get_aval(x)
        if actual.shape != aval.shape or actual.dtype != aval.dtype:
            raise TypeError(
                f"{self.name} was compiled for {aval.str_short()} as argument {name}, got {actual.str_short()}"
            )

    def as_text(self) -> str:
        """Return the text of the compiled program; for XLA, optimised HLO."""
        return self._executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """Return the backend's estimates for one run by name (for XLA `flops`, `bytes accessed`, ...)."""
        return dict(self._executable.cost_analysis())

    def memory_analysis(self) -> MemoryAnalysis:
        """Return the bytes of arguments, outputs, temporaries and code, and of the peak."""
        return MemoryAnalysis(self._executable.memory_analysis())

    @property
    def input_shardings(self) -> Any:
        """Shardings that the arguments must have, `(args, kwargs)`; None for arguments that the program drops."""
        shardings = self._shardings("input_shardings")
        in_tree = self._program.in_tree
        first = len(shardings) - in_tree.num_leaves - len(self._program.cells)
        return tree.tree_unflatten(in_tree, shardings[first:][: in_tree.num_leaves])

    @property
    def output_shardings(self) -> Any:
        """Shardings of the results, in the structure of the result."""
        out_tree = self._program.out_tree
        return tree.tree_unflatten(out_tree, self._shardings("output_shardings")[: out_tree.num_leaves])

    @property
    def out_info(self) -> Any:
        """Shape, dtype and sharding of the result: `ShapeDtypeStruct`s in its structure."""
        return self._program.out_info(getattr(self._executable, "output_shardings", None))

    def _shardings(self, which: str) -> list[Any]:
        shardings: list[Any] | None = getattr(self._executable, which, None)
        if shardings is None:
            raise BackendError(f"{self.name}: its backend, {self._lowered.target.backend.name!r}, has no {which}")
        return shardings

    def runtime_executable(self) -> Any:
        """Return the backend's executable object."""
        return self._executable


class MemoryAnalysis(dict[str, int]):
    """Bytes by name; `analysis["temp"]` and `analysis.temp_size_in_bytes` are the same number."""

    def __getattr__(self, name: str) -> int:
        key = "peak" if name == "peak_memory_in_bytes" else name.removesuffix("_size_in_bytes")
        if key == name or key not in self:
            raise AttributeError(f"memory_analysis has {', '.join(f'{k}_size_in_bytes' for k in self)}, not {name!r}")
        return self[key]
