"""From a program to StableHLO, and from that to an executable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import BackendError, ClosedJaxpr, ShapedArray, Var
from corejax.extend.devices import DEFAULT_OPTIONS, CompileOptions, bytes_text, check_memory
from corejax.extend.messages import warn_user
from corejax.extend.types import SymbolicDim
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._callbacks import Failures, run_calling_back
from corejax_xla_backend._lowering import host_callback
from corejax_xla_backend._lowering.context import add_main
from corejax_xla_backend._lowering.locations import without_locations
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._lowering.two_bits import check_collectives
from corejax_xla_backend._several_devices import concrete, like_of, names_shardings
from corejax_xla_backend._xla.agreement import check_before_runs
from corejax_xla_backend._xla.compile_errors import compile_failure
from corejax_xla_backend._xla.disk_cache import Compiled, compile_text
from corejax_xla_backend._xla.flags import Flags, flags_for
from corejax_xla_backend.sharding import SingleDeviceSharding

_OVER_SEVERAL = _jaxlib.PartitionedExecutable | _jaxlib.AheadProgram


class XlaExecutable(NamedTuple):
    """A program compiled for one device.

    Attributes:
        executable: it takes the operands that are used.
        kept: which of (constants, arguments) those are.
        consts: buffers of the constants.
        callbacks: Python functions that it calls.
        name: the program's, for messages.
        nbytes: bytes of the machine's memory that its results and temporaries take.
        origin: where it is from, if it was not compiled by this process.
        failures: what its callbacks raise, if it is to run to its end nevertheless.
    """

    executable: Any
    kept: tuple[bool, ...]
    consts: list[Any]
    callbacks: list[Callable[..., Any]]
    name: str
    nbytes: int
    origin: str = ""
    failures: Failures | None = None

    @property
    def calls_python(self) -> bool:
        """Whether it calls rules of primitives back."""
        return bool(self.callbacks)

    def run(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on buffers; the results are computed when they are read.

        Raises:
            MemoryError: the results and temporaries are larger than the machine's memory.
        """
        if self.nbytes > _jaxlib.LARGE:
            check_memory(self.nbytes, f"{self._program()} (results and temporaries)")
        used = [b for b, keep in zip((*self.consts, *buffers), self.kept, strict=True) if keep]
        try:
            return self._run_with_callbacks(used) if self.callbacks else self.executable(*used)
        except (RuntimeError, ValueError) as error:
            if not _jaxlib.is_out_of_memory(error):
                raise
            raise MemoryError(
                f"{self._program()} takes {bytes_text(self.nbytes)} beside its arguments: {error}"
            ) from None

    @property
    def input_shardings(self) -> list[Any]:
        """Where (constants, arguments) have to be; None of those that it does not take."""
        if isinstance(self.executable, _OVER_SEVERAL):
            shardings = iter(self.executable.in_shardings)
            return [next(shardings) if keep else None for keep in self.kept]
        here = SingleDeviceSharding(self.executable.device)
        return [here if keep else None for keep in self.kept]

    @property
    def output_shardings(self) -> list[Any]:
        """Where the results are."""
        if isinstance(self.executable, _OVER_SEVERAL):
            return list(self.executable.out_shardings)
        return [SingleDeviceSharding(self.executable.device)] * len(self.executable.out_avals)

    def as_text(self) -> str:
        """The program as XLA runs it, in HLO text."""
        return self.executable.optimized_hlo()  # type: ignore[no-any-return]

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run, by name (`flops`, `bytes accessed`, ...)."""
        return self.executable.cost_analysis()  # type: ignore[no-any-return]

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, temporaries and code."""
        return self.executable.memory_analysis()  # type: ignore[no-any-return]

    def _run_with_callbacks(self, buffers: list[Any]) -> list[Any]:
        """Run, and wait before and after.

        Were such programs queued up, the callbacks of the first could wait for computations of their own that found no
        place behind the others.
        """
        _jaxlib.block_until_ready(buffers)
        failed = 0 if self.failures is None else self.failures.count
        try:
            outs: list[Any] = run_calling_back(self.executable.run_and_wait, *buffers)
        except Exception as error:
            failure = host_callback.original_failure(error)
            if failure is error:
                raise
        else:
            if self.failures is not None:
                self.failures.tell_since(failed)
            return outs
        raise failure

    def _program(self) -> str:
        results = ", ".join(aval.str_short(short_dtypes=False) for aval in self.executable.out_avals)
        return f"the compiled program {self.name!r}, with results [{results}],"


class Lowering(NamedTuple):
    """A program as text.

    Attributes:
        text: StableHLO, with locations.
        kept: which of (constants, arguments) it takes.
        callbacks: Python functions that it calls, by index.
        unusable: types of donated arguments whose memory no result can take.
        partitioners: what partitions some of its operations.
        failures: what its callbacks raise, if it is over several devices.
    """

    text: str
    kept: tuple[bool, ...]
    callbacks: list[Callable[..., Any]]
    unusable: tuple[ShapedArray, ...] = ()
    partitioners: tuple[Any, ...] = ()
    failures: Failures | None = None

    def as_text(self, *, pretty: bool = True, debug_info: bool = False) -> str:
        """As `Lowered.as_text`."""
        text = self.text if debug_info else without_locations(self.text)
        return _jaxlib.module_text(_jaxlib.parse_module(text), debug_info=debug_info) if pretty else text

    def module(self) -> Any:
        """The program as an MLIR module."""
        return _jaxlib.parse_module(self.text)

    def hlo(self) -> Any:
        """The program in XLA's language, before optimisation; `as_hlo_text()` shows it."""
        return _jaxlib.xla_computation(self.module())

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run, by name, before optimisation."""
        return _jaxlib.hlo_cost_analysis(self.hlo())


def lower(closed: ClosedJaxpr, name: str, platform: str, options: CompileOptions = DEFAULT_OPTIONS) -> Lowering:
    """StableHLO of a program."""
    jaxpr = closed.jaxpr
    binders = (*jaxpr.constvars, *jaxpr.invars)
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var} | {
        v for v in jaxpr.outvars if type(v) is Var
    }
    known = {i: np.frombuffer(data, aval.dtype).reshape(aval.shape) for i, aval, data in options.known}
    kept = tuple(i not in known and (options.keep_unused or v in used) for i, v in enumerate(binders))
    donated = [*[False] * len(jaxpr.constvars), *options.donated]
    aliases, unusable = _aliases([v.aval for v in binders], kept, donated, closed.out_avals)
    builder = ModuleBuilder(platform, name, options.devices)
    if options.devices:
        builder.meshes.like = like_of(closed, options)
        builder.spread = any(s is not None and not s.is_fully_replicated for s in options.in_shardings)
    several = options.devices or names_shardings(options)
    word = "jax.buffer_donor = true" if several else "tf.aliasing_output = {} : i32"
    said = {i: [word.format(k)] for i, k in aliases.items()}
    for i, sharding in enumerate(options.in_shardings):
        if sharding is not None:
            said.setdefault(i, []).append(builder.meshes.attribute(sharding, binders[i].aval.ndim))
    results = [
        builder.meshes.attribute(sharding, aval.ndim)
        for sharding, aval in zip(options.out_shardings, closed.out_avals, strict=False)
    ]
    add_main(builder, closed, kept, {i: ", ".join(texts) for i, texts in said.items()}, results, known=known)
    text = builder.text(f"jit_{name}")
    return Lowering(text, kept, builder.callbacks, unusable, tuple(builder.partitioners), builder.failures)


def _aliases(
    avals: Sequence[ShapedArray], kept: Sequence[bool], donated: Sequence[bool], results: Sequence[ShapedArray]
) -> tuple[dict[int, int], tuple[ShapedArray, ...]]:
    """Which result takes the memory of which donated argument: the first left of its shape and dtype.

    Returns:
        Index of an argument -> of the result; and the types of arguments that no result can take.
    """
    aliases: dict[int, int] = {}
    unusable = []
    left = list(range(len(results)))
    for i, aval in enumerate(avals):
        if i < len(donated) and donated[i] and kept[i]:
            same = (k for k in left if (results[k].shape, results[k].dtype) == (aval.shape, aval.dtype))
            found = next(same, None)
            if found is None:
                unusable.append(aval)
            else:
                aliases[i] = found
                left.remove(found)
    return aliases, tuple(unusable)


def compile_program(
    closed: ClosedJaxpr, name: str, device: Any, consts: list[Any], options: CompileOptions = DEFAULT_OPTIONS
) -> XlaExecutable:
    """Compile for a device, or for those of the options; `consts` are buffers of the program's constants.

    Raises:
        ValueError: XLA has no such option, or not with this value; or sizes of the program's arguments are symbols.
        BackendError: it cannot be compiled; names the primitive, where that is known.
    """
    _check_sizes(closed, name)
    if _jaxlib.is_absent(device) and not options.devices:
        there = SingleDeviceSharding(device)
        ins, outs = (there,) * (len(closed.consts) + len(closed.in_avals)), (there,) * len(closed.out_avals)
        options = options._replace(device=None, devices=(device,), in_shardings=ins, out_shardings=outs)
    text, kept, callbacks, unusable, partitioners, failures = lower(closed, name, device.platform, options)
    before_runs = None if partitioners else check_before_runs(text, options.devices)
    if unusable:
        types = ", ".join(aval.str_short(short_dtypes=False) for aval in unusable)
        warn_user(
            f"Some donated buffers were not usable in jit of {name}: {types}; the program has no result of that shape "
            "and dtype left to take the memory, and the arrays stay"
        )
    flags, asked = flags_for(closed.jaxpr, text, device, options)
    try:
        with _jaxlib.uninterrupted():
            executable, origin = _compile(
                functools.partial(
                    compile_text,
                    text,
                    closed.out_avals,
                    device,
                    callbacks=callbacks,
                    committed=options.binds,
                    partitions=_partitions(closed, kept, options, before_runs),
                    cached=not partitioners,
                ),
                flags,
                flags if partitioners else asked,  # they are Python functions, and not called again
            )
    except BackendError:
        raise
    except _jaxlib.COMPILE_ERRORS as error:
        failure = next((p.failure for p in partitioners if p.failure is not None), None)
        if failure is not None:
            raise failure from None
        if options.flags and "option" in str(error):
            given = ", ".join(f"{key}={value!r}" for key, value in options.flags)
            raise ValueError(f"jit of {name}: XLA refuses compiler_options ({given}): {error}") from None
        if _jaxlib.is_out_of_memory(error):
            raise MemoryError(f"jit of {name}: there is no memory to compile it: {error}") from None
        raise compile_failure(name, text, error) from None
    if len(options.devices) > 1 and device.platform == "cpu":
        check_collectives(name, text, executable.optimized_hlo)
    if isinstance(executable, _jaxlib.PartitionedExecutable):
        consts = executable.placed(consts, kept)
    nbytes = executable.nbytes() if device.platform == "cpu" else 0
    return XlaExecutable(executable, kept, consts, callbacks, name, nbytes, origin, failures)


def _compile(compile_with: Callable[..., Compiled], flags: Flags, asked: Flags) -> Compiled:
    """With all flags, or with those alone that were asked for: what fusions can do, XLA has not everywhere."""
    try:
        return compile_with(overrides=flags)
    except _jaxlib.COMPILE_ERRORS as error:
        if flags == asked or not _jaxlib.is_unimplemented(error):
            raise
    return compile_with(overrides=asked)


def _partitions(
    closed: ClosedJaxpr, kept: Sequence[bool], options: CompileOptions, before_runs: Callable[[], None] | None
) -> _jaxlib.Partitions | None:
    """How the program is shared out over devices; None for one on one device."""
    if not options.devices:
        return None
    avals = [v.aval for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    given = options.in_shardings or (None,) * len(avals)
    outputs = options.out_shardings or (None,) * len(closed.out_avals)
    return _jaxlib.Partitions(
        options.devices,
        tuple(concrete(x, a.ndim) for x, a, keep in zip(given, avals, kept, strict=True) if keep),
        tuple(concrete(x, a.ndim) for x, a in zip(outputs, closed.out_avals, strict=True)),
        tuple(aval.ndim for aval, keep in zip(avals, kept, strict=True) if keep),
        like_of(closed, options),
        before_runs,
    )


def _check_sizes(closed: ClosedJaxpr, name: str) -> None:
    for aval in closed.in_avals:
        if any(isinstance(d, SymbolicDim) for d in aval.shape):
            raise ValueError(
                f"{name} is compiled for integer sizes, and an argument is {aval.str_short()}: functions of sizes that "
                "are symbols are exported (corejax.export), and compiled for each call's sizes"
            )
