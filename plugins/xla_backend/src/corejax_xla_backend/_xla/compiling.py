"""Lowering of a program to StableHLO, and compilation of StableHLO to an executable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import BackendError, ClosedJaxpr, ShapedArray, Var
from corejax.extend.devices import DEFAULT_OPTIONS, CompileOptions
from corejax.extend.messages import warn_user
from corejax.extend.types import SymbolicDim
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._callbacks import Failures
from corejax_xla_backend._lowering.context import add_main
from corejax_xla_backend._lowering.locations import without_locations
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._lowering.two_bits import check_collectives
from corejax_xla_backend._several_devices import concrete, like_of, names_shardings
from corejax_xla_backend._xla.agreement import check_before_runs
from corejax_xla_backend._xla.compile_errors import compile_failure
from corejax_xla_backend._xla.disk_cache import Compiled, compile_text
from corejax_xla_backend._xla.executable import XlaExecutable
from corejax_xla_backend._xla.flags import Flags, flags_for
from corejax_xla_backend.sharding import SingleDeviceSharding


class RejectedOptions(ValueError, RuntimeError):
    """XLA rejects `compiler_options`; a RuntimeError, too, which JAX's users expect."""


class Lowering(NamedTuple):
    """A program lowered to text.

    Attributes:
        text: StableHLO, with locations.
        kept: a flag for each of (constants, arguments): whether the program takes it.
        callbacks: Python functions that the program calls, by index.
        unusable: types of donated arguments that no result can alias.
        partitioners: the partitioners of its calls that XLA cannot partition.
        failures: exceptions of the callbacks of a program over several devices.
    """

    text: str
    kept: tuple[bool, ...]
    callbacks: list[Callable[..., Any]]
    unusable: tuple[ShapedArray, ...] = ()
    partitioners: tuple[Any, ...] = ()
    failures: Failures | None = None

    def as_text(self, *, pretty: bool = True, debug_info: bool = False) -> str:
        """Return the StableHLO text; see `Lowered.as_text`."""
        text = self.text if debug_info else without_locations(self.text)
        return _jaxlib.module_text(_jaxlib.parse_module(text), debug_info=debug_info) if pretty else text

    def module(self) -> Any:
        """Return the program as an MLIR module."""
        return _jaxlib.parse_module(self.text)

    def hlo(self) -> Any:
        """Return the program as an XLA computation, before optimisation; `as_hlo_text()` returns its text."""
        return _jaxlib.xla_computation(self.module())

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates for one run, by name, before optimisation."""
        return _jaxlib.hlo_cost_analysis(self.hlo())


def lower(closed: ClosedJaxpr, name: str, platform: str, options: CompileOptions = DEFAULT_OPTIONS) -> Lowering:
    """Lower a program to StableHLO."""
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
        builder.is_sharded = any(s is not None and not s.is_fully_replicated for s in options.in_shardings)
    is_sharded = options.devices or names_shardings(options)
    donation = "jax.buffer_donor = true" if is_sharded else "tf.aliasing_output = {} : i32"
    attributes = {i: [donation.format(k)] for i, k in aliases.items()}
    for i, sharding in enumerate(options.in_shardings):
        if sharding is not None:
            attributes.setdefault(i, []).append(builder.meshes.attribute(sharding, binders[i].aval.ndim))
    results = [
        builder.meshes.attribute(sharding, aval.ndim)
        for sharding, aval in zip(options.out_shardings, closed.out_avals, strict=False)
    ]
    add_main(builder, closed, kept, {i: ", ".join(texts) for i, texts in attributes.items()}, results, known=known)
    text = builder.text(f"jit_{name}")
    return Lowering(text, kept, builder.callbacks, unusable, tuple(builder.partitioners), builder.failures)


def _aliases(
    avals: Sequence[ShapedArray], kept: Sequence[bool], donated: Sequence[bool], results: Sequence[ShapedArray]
) -> tuple[dict[int, int], tuple[ShapedArray, ...]]:
    """Choose the result that aliases each donated argument: the first free one of its shape and dtype.

    Returns:
        A mapping from an argument's index to its result's, and the types of arguments that no result can alias.
    """
    aliases: dict[int, int] = {}
    unusable = []
    free = list(range(len(results)))
    for i, aval in enumerate(avals):
        if i < len(donated) and donated[i] and kept[i]:
            same_type = (k for k in free if (results[k].shape, results[k].dtype) == (aval.shape, aval.dtype))
            result = next(same_type, None)
            if result is None:
                unusable.append(aval)
            else:
                aliases[i] = result
                free.remove(result)
    return aliases, tuple(unusable)


def compile_program(
    closed: ClosedJaxpr, name: str, device: Any, consts: list[Any], options: CompileOptions = DEFAULT_OPTIONS
) -> XlaExecutable:
    """Compile a program for a device, or for the devices of the options.

    Args:
        closed: the program.
        name: its name.
        device: the device.
        consts: buffers of the program's constants.
        options: the compile options.

    Raises:
        ValueError: XLA does not know an option or rejects its value, or sizes of the program's arguments are symbolic.
        BackendError: XLA cannot compile the program; the message names the primitive if it is known.
        MemoryError: the memory does not suffice to compile the program.
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
            f"Some donated buffers were not usable in jit of {name}: {types}; the program has no further result of "
            "that shape and dtype to reuse the memory, and the arrays are not deleted"
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
                flags if partitioners else asked,  # no second try, because XLA calls partitioners only once
            )
    except BackendError:
        raise
    except _jaxlib.COMPILE_ERRORS as error:
        failure = next((p.failure for p in partitioners if p.failure is not None), None)
        if failure is not None:
            raise failure from None
        if options.flags and "option" in str(error):
            listed = ", ".join(f"{key}={value!r}" for key, value in options.flags)
            raise RejectedOptions(f"jit of {name}: XLA rejects compiler_options ({listed}): {error}") from None
        if _jaxlib.is_out_of_memory(error):
            raise MemoryError(f"jit of {name}: the memory does not suffice to compile the program: {error}") from None
        raise compile_failure(name, text, error) from None
    if len(options.devices) > 1 and device.platform == "cpu":
        check_collectives(name, text, executable.optimized_hlo)
    if isinstance(executable, _jaxlib.PartitionedExecutable):
        consts = executable.placed(consts, kept)
    nbytes = executable.nbytes() if device.platform == "cpu" else 0
    return XlaExecutable(executable, kept, consts, callbacks, name, nbytes, origin, failures)


def _compile(compile_with: Callable[..., Compiled], flags: Flags, asked: Flags) -> Compiled:
    """Compile with all flags, or with only the requested ones if XLA lacks an implementation without fusions."""
    try:
        return compile_with(overrides=flags)
    except _jaxlib.COMPILE_ERRORS as error:
        if flags == asked or not _jaxlib.is_unimplemented(error):
            raise
    return compile_with(overrides=asked)


def _partitions(
    closed: ClosedJaxpr, kept: Sequence[bool], options: CompileOptions, before_runs: Callable[[], None] | None
) -> _jaxlib.Partitions | None:
    """Return how a program is partitioned over devices; None for a program on one device."""
    if not options.devices:
        return None
    avals = [v.aval for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    inputs = options.in_shardings or (None,) * len(avals)
    outputs = options.out_shardings or (None,) * len(closed.out_avals)
    return _jaxlib.Partitions(
        options.devices,
        tuple(concrete(x, a.ndim) for x, a, keep in zip(inputs, avals, kept, strict=True) if keep),
        tuple(concrete(x, a.ndim) for x, a in zip(outputs, closed.out_avals, strict=True)),
        tuple(aval.ndim for aval, keep in zip(avals, kept, strict=True) if keep),
        like_of(closed, options),
        before_runs,
    )


def _check_sizes(closed: ClosedJaxpr, name: str) -> None:
    """Raise ValueError if an argument has a symbolic size."""
    for aval in closed.in_avals:
        if any(isinstance(d, SymbolicDim) for d in aval.shape):
            raise ValueError(
                f"{name}: programs are compiled for integer sizes, but an argument is {aval.str_short()}. Export a "
                "function of symbolic sizes (corejax.export); it is compiled for each call's sizes"
            )
