"""Compiled programs: from a module to something that runs on buffers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend import ShapedArray
from corejax_xla_backend._exit import inside, stop_at_exit

from ._buffers import Buffer, place
from ._client import Client, Device, check_not_forked, compile_options, default_device, device_list, device_sharding
from ._dispatch_state import make_dispatcher
from ._mlir import ir
from ._probe import FEATURES, core

_AGAIN = object()

COMPILE_ERRORS = (ir.MLIRError, RuntimeError)
"""What MLIR says against a module's text, and XLA against a program."""


def is_unimplemented(error: Exception) -> bool:
    """Whether XLA cannot compile a program as it was asked to, and says nothing against the program itself."""
    return str(error).startswith(("UNIMPLEMENTED", "INTERNAL"))


class FastpathData(NamedTuple):
    """What the C++ dispatcher keeps for one signature; it reads these fields by name (and wants a tuple).

    ``const_args`` go in front of a call's own arguments; ``kept_var_bitvec`` has an entry for each of all of
    them.
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
    """A compiled program, as far as one can look at it.

    Attributes:
        loaded: jaxlib's ``LoadedExecutable``.
        out_avals: one per output.
        name: the module's.
    """

    loaded: Any
    out_avals: tuple[ShapedArray, ...]
    name: str

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run by name: ``flops``, ``bytes accessed`` and others."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, temporaries, generated code and the peak of them all."""
        stats = self.loaded.get_compiled_memory_stats()
        names = ("argument", "output", "temp", "alias", "generated_code")
        sizes = {name: int(getattr(stats, f"{name}_size_in_bytes")) for name in names}
        total = sizes["argument"] + sizes["output"] - sizes["alias"] + sizes["temp"]
        sizes["peak"] = max(int(stats.peak_memory_in_bytes), total)  # jaxlib's leaves temporaries out
        return sizes

    def nbytes(self) -> int:
        """Bytes that results and temporaries take together."""
        stats = self.loaded.get_compiled_memory_stats()
        return int(stats.output_size_in_bytes) + int(stats.temp_size_in_bytes)

    def optimized_hlo(self) -> str:
        """The program as XLA runs it, in HLO text."""
        return self.loaded.get_hlo_text()

    def serialize(self) -> bytes:
        """The compiled program as bytes, for :func:`load` by the same jaxlib on the same kind of device."""
        return self.loaded.serialize()


class Executable(Program):
    """A program compiled for one device and loaded there.

    Calling it with buffers starts it and returns buffers at once (about 3 us); they are waited for when read.

    Attributes:
        out_avals: one per output; the output buffers carry these very objects as ``.aval``.
        device: where it runs; arguments that are elsewhere are copied there.
        committed: whether its outputs are bound to the device.
        out_places: where its outputs are, as jaxlib wants it.
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
        # Of a copy: a dispatcher that knew its owner would be a cycle, which keeps the program until Python looks
        # for cycles; and what C++ holds as the key of its cache is not looked into at all.
        self._call = copy.copy(self)._make_call()

    def _make_call(self) -> Callable[..., Any]:
        """The C++ dispatcher over bare buffers.

        It makes output buffers with our avals, which no other call does on every version without jax.
        """
        registry = core.pytree.PyTreeRegistry()
        out_tree = registry.flatten([0] * len(self.out_avals))[1]

        def cache_miss(*buffers: Buffer) -> tuple[Any, FastpathData, bool]:
            check_not_forked()
            stop_at_exit()
            kept = [True] * len(buffers)
            return _AGAIN, self.fastpath_data(out_tree, kept, (), any(b._committed for b in buffers)), False

        # `fun` is what runs instead while jax.disable_jit() holds in this thread.
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
        """Start the program; raises ``ValueError`` where buffers do not fit or were deleted."""
        outputs = self._call(*buffers)
        if outputs is _AGAIN:  # the first call of a signature only taught the dispatcher the fast path
            outputs = self._call(*buffers)
        return self.execute_slowly(*buffers) if outputs is _AGAIN else outputs

    def fastpath_data(
        self, out_tree: Any, kept: Sequence[bool], consts: Sequence[Buffer], committed: bool = False
    ) -> FastpathData:
        """What a dispatcher needs to run this program; see :class:`FastpathData`.

        ``committed``: whether an argument is bound to the device, and so are the results.
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
        """The same, without the dispatcher: the path for processes in which that cannot be used."""
        return self._outputs(self.loaded.execute_sharded(self._here(buffers)))

    def run_and_wait(self, *buffers: Buffer) -> list[Buffer]:
        """Run it to its end, also where it has no outputs to wait for.

        Raises:
            RuntimeError: it failed; of a program without outputs nobody else would say so.
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
            return results.consume_with_handlers(
                [core.array_result_handler(aval, place, self.committed, _skip_checks=True) for aval, place in pairs]
            )
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
    """Compile a module whose public ``main`` takes and returns tensors, and load it on one device.

    Args:
        module: StableHLO, CHLO and func.
        out_avals: what ``main`` returns, in order.
        device: the default device unless given.
        callbacks: Python functions of NumPy arrays returning tuples of arrays, which the program calls by
            ``custom_call @xla_ffi_python_cpu_callback`` with attribute ``index`` (``ui64``) into this list.
        options: ``overrides``, XLA flags by name for this program alone; ``committed``, whether its outputs are
            bound to the device; ``partitions``, `_partitioned.Partitions` of a program over several devices.

    Raises:
        RuntimeError: XLA refuses the program; the message is XLA's.
    """
    more = {"host_callbacks": list(callbacks)} if callbacks else {}

    def make(client: Client, devices: Any, options: Any) -> Any:
        return client.compile_and_load(module, devices, options, **more)

    return _loaded(make, out_avals, device, name_of(module), **options)


def load(
    data: bytes, out_avals: Sequence[ShapedArray], device: Device | None = None, *, name: str = "main", **options: Any
) -> Executable:
    """The program of :meth:`Executable.serialize`'s bytes, without compiling; options are those it was compiled with.

    Raises:
        RuntimeError: the bytes are damaged. Bytes of another release or machine are not always found out.
    """

    def make(client: Client, devices: Any, options: Any) -> Any:
        return client.deserialize_executable(data, devices, options)

    return _loaded(make, out_avals, device, name, **options)


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
        return partitions.executable(loaded, out_avals, name)  # type: ignore[no-any-return]
    return Executable(loaded, out_avals, target, name=name, committed=committed)


def hlo_cost_analysis(computation: Any) -> dict[str, float]:
    """XLA's estimates for one run of a computation that is not compiled, by name."""
    return dict(core.hlo_module_cost_analysis(default_device().client, computation.as_hlo_module()))


def name_of(module: ir.Module) -> str:
    """A module's name."""
    attributes = module.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else "main"
