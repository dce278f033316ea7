"""Compiled programs: from a module to something that runs on buffers."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ._buffers import Aval, Buffer, place
from ._client import Client, Device, check_not_forked, compile_options, default_device, device_list, device_sharding
from ._dispatch_state import make_dispatcher
from ._exit import busy, stop_at_exit
from ._mlir import ir
from ._probe import FEATURES, core

_AGAIN = object()


class FastpathData(NamedTuple):
    """What the C++ dispatcher keeps for one signature; it reads these fields by name (and wants a tuple).

    ``const_args`` go in front of a call's own arguments; ``kept_var_bitvec`` has an entry for each of all of
    them.
    """

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence[Any]
    out_shardings: Sequence[Any]
    out_avals: Sequence[Aval]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[None]
    const_args: Sequence[Buffer]


class Executable:
    """A program compiled for one device and loaded there.

    Calling it with buffers starts it and returns buffers at once (about 3 us); they are waited for when read.

    Attributes:
        loaded: jaxlib's ``LoadedExecutable``.
        out_avals: one per output; the output buffers carry these very objects as ``.aval``.
        device: where it runs; arguments that are elsewhere are copied there.
        committed: whether its outputs are bound to the device.
    """

    def __init__(
        self,
        loaded: Any,
        out_avals: Sequence[Aval],
        device: Device,
        *,
        name: str = "main",
        committed: bool = False,
    ) -> None:
        self.loaded = loaded
        self.out_avals = tuple(out_avals)
        self.device = device
        self.name = name
        self.committed = committed
        self.sharding = device_sharding(device)
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
            return _AGAIN, self.fastpath_data(out_tree, kept, ()), False

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

    def fastpath_data(self, out_tree: Any, kept: Sequence[bool], consts: Sequence[Buffer]) -> FastpathData:
        """What a dispatcher needs to run this program; see :class:`FastpathData`."""
        num_inputs, num_outputs = sum(kept), len(self.out_avals)
        return FastpathData(
            self.loaded,
            out_tree,
            [self.sharding] * num_inputs,
            [self.sharding] * num_outputs,
            list(self.out_avals),
            [self.committed] * num_outputs,
            list(kept),
            [None] * num_inputs,
            list(consts),
        )

    def execute_slowly(self, *buffers: Buffer) -> list[Buffer]:
        """The same, without the dispatcher: the path for processes in which that cannot be used."""
        here = [b if b._sharding._device == self.device else place(b, self.sharding) for b in buffers]
        results = self.loaded.execute_sharded(here)
        if FEATURES.handler_skips_checks:
            return results.consume_with_handlers(
                [
                    core.array_result_handler(aval, self.sharding, self.committed, _skip_checks=True)
                    for aval in self.out_avals
                ]
            )
        return [
            Buffer(aval, self.sharding, shards, self.committed, _skip_checks=True)
            for aval, shards in zip(self.out_avals, results.disassemble_into_single_device_arrays(), strict=True)
        ]

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates for one run by name: ``flops``, ``bytes accessed`` and others."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, outputs, temporaries, generated code and the peak of them all."""
        stats = self.loaded.get_compiled_memory_stats()
        names = ("argument", "output", "temp", "alias", "generated_code")
        sizes = {name: int(getattr(stats, f"{name}_size_in_bytes")) for name in names}
        sizes["peak"] = int(stats.peak_memory_in_bytes)
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


def compile_module(
    module: ir.Module,
    out_avals: Sequence[Aval],
    device: Device | None = None,
    *,
    overrides: Sequence[tuple[str, Any]] = (),
    callbacks: Sequence[Callable[..., Any]] = (),
    committed: bool = False,
) -> Executable:
    """Compile a module whose public ``main`` takes and returns tensors, and load it on one device.

    Args:
        module: StableHLO, CHLO and func.
        out_avals: what ``main`` returns, in order.
        device: the default device unless given.
        overrides: XLA flags by name for this program alone.
        callbacks: Python functions of NumPy arrays returning tuples of arrays, which the program calls by
            ``custom_call @xla_ffi_python_cpu_callback`` with attribute ``index`` (``ui64``) into this list.

    Raises:
        RuntimeError: XLA refuses the program; the message is XLA's.
    """
    target = default_device() if device is None else device
    loaded = load_program(target.client, module, [target], overrides=overrides, callbacks=callbacks)
    return Executable(loaded, out_avals, target, name=_name(module), committed=committed)


def load_program(
    client: Client,
    module: ir.Module,
    devices: Sequence[Device],
    *,
    num_replicas: int | None = None,
    overrides: Sequence[tuple[str, Any]] = (),
    callbacks: Sequence[Callable[..., Any]] = (),
) -> Any:
    """jaxlib's ``LoadedExecutable`` for any number of devices."""
    options = compile_options(devices, num_replicas=num_replicas, overrides=overrides)
    more = {"host_callbacks": list(callbacks)} if callbacks else {}
    stop_at_exit()
    thread = threading.get_ident()
    busy.add(thread)
    try:
        return client.compile_and_load(module, device_list(*devices), options, **more)
    finally:
        busy.discard(thread)


def load(
    data: bytes,
    out_avals: Sequence[Aval],
    device: Device | None = None,
    *,
    name: str = "main",
    committed: bool = False,
) -> Executable:
    """The program of :meth:`Executable.serialize`'s bytes, without compiling."""
    target = default_device() if device is None else device
    loaded = target.client.deserialize_executable(data, device_list(target), compile_options([target]))
    return Executable(loaded, out_avals, target, name=name, committed=committed)


def _name(module: ir.Module) -> str:
    attributes = module.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else "main"
