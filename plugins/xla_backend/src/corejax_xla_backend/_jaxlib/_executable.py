"""Compiled programs: compile a module to an executable that runs on buffers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from corejax.extend import ShapedArray
from corejax_xla_backend._exit import inside, stop_at_exit

from ._buffers import place
from ._classes import Buffer, Client, Device
from ._client import check_not_forked, compile_options, default_device, device_list, device_sharding
from ._dispatch_state import make_dispatcher
from ._probe import FEATURES, core

if TYPE_CHECKING:
    from ._mlir import ir

_AGAIN = object()


def is_unimplemented(error: Exception) -> bool:
    """Return whether an error says that XLA lacks a feature or failed itself, not that the program is invalid."""
    return str(error).startswith(("UNIMPLEMENTED", "INTERNAL"))


class FastpathData(NamedTuple):
    """The data that the C++ dispatcher caches for one signature; C++ reads the fields by name and requires a tuple.

    The dispatcher passes ``const_args`` before the call's own arguments; ``kept_var_bitvec`` has an entry for each
    constant and argument.
    """

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence[Any]
    out_shardings: Sequence[Any]
    out_avals: Sequence[ShapedArray]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[None]
    const_args: Sequence[Buffer]


class Program:
    """A compiled program and its analyses; the subclass :class:`Executable` can run it.

    Attributes:
        loaded: jaxlib's ``LoadedExecutable``.
        out_avals: the aval of each output.
        name: the name of the module.
        data: the bytes that the program was loaded from, if any. XLA on CPUs cannot serialize such a program.
    """

    loaded: Any
    out_avals: tuple[ShapedArray, ...]
    name: str
    data: bytes | None = None

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimates for one run by name: ``flops``, ``bytes accessed`` and others."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> dict[str, int]:
        """Return the bytes of arguments, outputs, temporaries, aliases, generated code, and the peak."""
        stats = self.loaded.get_compiled_memory_stats()
        names = ("argument", "output", "temp", "alias", "generated_code")
        sizes = {name: int(getattr(stats, f"{name}_size_in_bytes")) for name in names}
        total = sizes["argument"] + sizes["output"] - sizes["alias"] + sizes["temp"]
        sizes["peak"] = max(int(stats.peak_memory_in_bytes), total)  # jaxlib's own peak omits temporaries
        return sizes

    def nbytes(self) -> int:
        """Return the bytes that results and temporaries take together."""
        stats = self.loaded.get_compiled_memory_stats()
        return int(stats.output_size_in_bytes) + int(stats.temp_size_in_bytes)

    def optimized_hlo(self) -> str:
        """Return the optimised program as HLO text."""
        return str(self.loaded.get_hlo_text())

    def serialize(self) -> bytes:
        """Return the compiled program as bytes, for :func:`load` by the same jaxlib on the same kind of device."""
        return bytes(self.loaded.serialize()) if self.data is None else self.data


class Executable(Program):
    """A program compiled for one device and loaded there.

    A call starts the program and returns the output buffers at once (about 3 us); reading a buffer waits for it.

    Attributes:
        out_avals: the aval of each output; the output buffers have these very objects as ``.aval``.
        device: the device that runs the program; arguments on other devices are copied to it.
        committed: whether the outputs are bound to the device.
        out_places: jaxlib's shardings of the outputs.
    """

    def __init__(
        self,
        loaded: Any,
        out_avals: Sequence[ShapedArray],
        device: Device,
        *,
        name: str = "main",
        committed: bool = False,
        out_places: Sequence[Any] | None = None,
    ) -> None:
        self.loaded = loaded
        self.out_avals = tuple(out_avals)
        self.device = device
        self.name = name
        self.committed = committed
        self.sharding = device_sharding(device)
        self.out_places = [self.sharding] * len(self.out_avals) if out_places is None else list(out_places)
        # The dispatcher belongs to a copy of this object. A dispatcher that referred to its owner would be part of a
        # reference cycle, which keeps the program alive until the garbage collector runs; and the collector does not
        # traverse the keys of the C++ cache at all.
        self._call = copy.copy(self)._make_call()

    def _make_call(self) -> Any:
        """Return a C++ dispatcher over bare buffers.

        The dispatcher creates output buffers with our avals, which no other entry point does on all supported
        releases without importing jax.
        """
        registry = core.pytree.PyTreeRegistry()
        out_tree = registry.flatten([0] * len(self.out_avals))[1]

        def cache_miss(*buffers: Buffer) -> tuple[Any, FastpathData, bool]:
            check_not_forked()
            stop_at_exit()
            kept = [True] * len(buffers)
            return _AGAIN, self.fastpath_data(out_tree, kept, (), any(b._committed for b in buffers)), False

        # The second argument runs in place of the program while jax.disable_jit() is active in this thread.
        return make_dispatcher(
            self.name,
            self.execute_slowly,
            cache_miss,
            [],
            [],
            object(),
            registry,
            place,
            core.PjitFunctionCache(16),
        )

    def __call__(self, *buffers: Buffer) -> list[Buffer]:
        """Start the program on buffers; raise ValueError if they do not match its inputs or were deleted."""
        outputs = self._call(*buffers)
        if outputs is _AGAIN:  # the first call of a signature only stored the fast path in the dispatcher
            outputs = self._call(*buffers)
        return self.execute_slowly(*buffers) if outputs is _AGAIN else outputs

    def fastpath_data(
        self, out_tree: Any, kept: Sequence[bool], consts: Sequence[Buffer], committed: bool = False
    ) -> FastpathData:
        """Return the data that a dispatcher needs to run this program.

        Args:
            out_tree: the tree of the outputs.
            kept: for each constant and argument, whether the program takes it.
            consts: buffers that are passed before the arguments.
            committed: whether an argument is bound to the device, so that the results are bound to it as well.
        """
        num_inputs, num_outputs = sum(kept), len(self.out_avals)
        return FastpathData(
            self.loaded,
            out_tree,
            [self.sharding] * num_inputs,
            list(self.out_places),
            list(self.out_avals),
            [committed or self.committed] * num_outputs,
            list(kept),
            [None] * num_inputs,
            list(consts),
        )

    def execute_slowly(self, *buffers: Buffer) -> list[Buffer]:
        """Start the program without the dispatcher, for processes in which the dispatcher cannot be used."""
        return self._outputs(self.loaded.execute_sharded(self._here(buffers)))

    def run_and_wait(self, *buffers: Buffer) -> list[Buffer]:
        """Run the program and wait until it ends, even if it has no outputs to wait for.

        Raises:
            RuntimeError: the program failed. If it has no outputs, no other call reports the failure.
        """
        check_not_forked()
        stop_at_exit()
        results = self.loaded.execute_sharded(self._here(buffers), with_tokens=True)
        token = results.consume_token()
        outputs = self._outputs(results)
        token.block_until_ready()
        return outputs

    def _here(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        return [b if b._sharding == self.sharding else place(b, self.sharding) for b in buffers]

    def _outputs(self, results: Any) -> list[Buffer]:
        pairs = list(zip(self.out_avals, self.out_places, strict=True))
        if FEATURES.handler_skips_checks:
            outputs: list[Buffer] = results.consume_with_handlers(
                [core.array_result_handler(aval, place, self.committed, _skip_checks=True) for aval, place in pairs]
            )
            return outputs
        return [
            Buffer(aval, place, parts, self.committed, _skip_checks=True)
            for (aval, place), parts in zip(pairs, results.disassemble_into_single_device_arrays(), strict=True)
        ]


def compile_module(
    module: ir.Module,
    out_avals: Sequence[ShapedArray],
    device: Device | None = None,
    *,
    callbacks: Sequence[Callable[..., Any]] = (),
    **options: Any,
) -> Executable:
    """Compile a module and load it on one device, or on several by the option `partitions`.

    Args:
        module: a module of the dialects StableHLO, CHLO and func; its public ``main`` takes and returns tensors.
        out_avals: the avals of the results of ``main``.
        device: the default device unless given.
        callbacks: Python functions from NumPy arrays to tuples of arrays. The program calls them by
            ``custom_call @xla_ffi_python_cpu_callback``; its attribute ``index`` (``ui64``) selects one.
        options: ``overrides``, XLA flags by name for this program alone; ``committed``, whether its outputs are
            bound to the device; ``partitions``, `_partitioned.Partitions` of a program over several devices.

    Raises:
        RuntimeError: XLA cannot compile the program; the message is XLA's.
    """
    host_callbacks = {"host_callbacks": list(callbacks)} if callbacks else {}

    def make(client: Client, devices: Any, options: Any) -> Any:
        return client.compile_and_load(module, devices, options, **host_callbacks)

    return _loaded(make, out_avals, device, name_of(module), **options)


def load(
    data: bytes, out_avals: Sequence[ShapedArray], device: Device | None = None, *, name: str = "main", **options: Any
) -> Executable:
    """Load a program from the bytes of :meth:`Executable.serialize`, without compiling it.

    Args:
        data: the bytes.
        out_avals: the avals of the results.
        device: the default device unless given.
        name: the name of the program.
        options: the options that the program was compiled with; see :func:`compile_module`.

    Raises:
        RuntimeError: the bytes are damaged. Bytes of another release or machine are not always detected.
    """

    def make(client: Client, devices: Any, options: Any) -> Any:
        return client.deserialize_executable(data, devices, options)

    program = _loaded(make, out_avals, device, name, **options)
    program.data = data
    return program


def _loaded(
    make: Callable[[Client, Any, Any], Any],
    out_avals: Sequence[ShapedArray],
    device: Device | None,
    name: str,
    overrides: Sequence[tuple[str, Any]] = (),
    committed: bool = False,
    partitions: Any = None,
) -> Executable:
    target = default_device() if device is None else device
    options = compile_options(target, overrides=overrides, partitions=partitions)
    devices = device_list(*([target] if partitions is None else partitions.devices))
    with inside():
        loaded = make(target.client, devices, options)
    if partitions is not None:
        return partitions.executable(loaded, out_avals, name)  # type: ignore[no-any-return]  # an Executable, too
    return Executable(loaded, out_avals, target, name=name, committed=committed)


def hlo_cost_analysis(computation: Any) -> dict[str, float]:
    """Return XLA's estimates by name for one run of a computation that is not compiled."""
    return dict(core.hlo_module_cost_analysis(default_device().client, computation.as_hlo_module()))


def name_of(module: ir.Module) -> str:
    """Return the name of a module, or ``"main"`` if it has none."""
    from ._mlir import ir  # MLIR is imported when the first program is compiled

    attributes = module.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else "main"
