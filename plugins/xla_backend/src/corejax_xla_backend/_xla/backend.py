"""The backend `xla`: it lowers programs to StableHLO and compiles them by XLA, for jaxlib's devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import Backend, Capabilities, ClosedJaxpr, ShapedArray, as_array, config
from corejax.extend.devices import DEFAULT_OPTIONS, CompileOptions, Target, buffer_of
from corejax.extend.messages import clears_cache
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._compiled_impl import dispatch as dispatched
from corejax_xla_backend._compiled_impl import run_program
from corejax_xla_backend._xla import dispatch
from corejax_xla_backend._xla.resharding import put_sharded
from corejax_xla_backend.sharding import Sharding, SingleDeviceSharding, other_memory

if TYPE_CHECKING:
    from corejax_xla_backend._xla.compiling import Lowering
    from corejax_xla_backend._xla.executable import XlaExecutable

clears_cache(_jaxlib.forget_readers)
clears_cache(_jaxlib.forget_scalars)


class XlaBackend(Backend):
    """XLA through jaxlib. Importing this module imports jaxlib; devices start when they are first used."""

    name = "xla"
    capabilities = Capabilities(
        ("cpu", "cuda", "gpu", "host"),
        lowering="StableHLO",
        dispatcher=True,
        options=frozenset(CompileOptions._fields),
    )
    buffer_type = _jaxlib.Buffer
    device_type = _jaxlib.Device | _jaxlib.CompileOnlyDevice

    def platform(self) -> str:
        """Return the default platform: CUDA if it starts, else the CPU."""
        return _jaxlib.default_backend()

    def devices(self, platform: str | None = None) -> list[Any]:
        """Return jaxlib's devices of a platform."""
        return _jaxlib.devices(platform)

    def topology(self, name: str, platform: str) -> list[Any]:
        """Return devices to compile for without attaching them; a name such as `8x8` says how many."""
        return _jaxlib.Topology(name, platform).devices

    def default_device(self, platform: str | None = None) -> Any:
        """Return the device of the setting `default_device`, else the first device."""
        chosen = config.default_device
        if chosen is not None and platform in (None, chosen.platform):
            return chosen
        return _jaxlib.default_device() if platform is None else _jaxlib.local_devices(platform)[0]

    def put(self, value: Any, aval: ShapedArray, device: Any = None) -> Any:
        """Return a buffer on a device or sharding; it shares the memory of a NumPy array if possible."""
        if isinstance(device, SingleDeviceSharding):
            one: Any = device.device_tuple[0]
            kind = other_memory(device)
            return _jaxlib.copy_to(self.put(value, aval, one), one, committed=True, memory_kind=kind)
        if isinstance(device, Sharding):
            return put_sharded(self, value, aval, device)
        if not isinstance(value, np.ndarray):
            if _jaxlib.is_spread(value):
                return self.put(_jaxlib.whole(value), aval, device)
            target = self.default_device() if device is None else device
            return _jaxlib.copy_to(value, target, committed=device is not None)
        return _jaxlib.put(value, aval, device or config.default_device, committed=device is not None, alias=True)

    def put_copy(self, value: np.ndarray[Any, Any], aval: ShapedArray, sharding: Sharding) -> Any:
        """Return a buffer over a sharding's devices with a copy of an array that its owner may write to."""
        return _jaxlib.put_parts(value, aval, _jaxlib.placement(sharding, aval.ndim), alias=False)

    def fetch(self, buffer: Any) -> np.ndarray[Any, Any]:
        """Return a NumPy array; a view of the buffer's memory if the memory is the host's."""
        return _jaxlib.whole(buffer) if _jaxlib.is_spread(buffer) else _jaxlib.to_numpy(buffer)

    def start_fetch(self, buffer: Any) -> None:
        """Start a copy to the host, unless the buffer's memory is the host's."""
        if not _jaxlib.is_spread(buffer) and _jaxlib.device_of(buffer).platform != "cpu":
            _jaxlib.start_copy_to_host(buffer)

    def device_of(self, buffer: Any) -> Any:
        """Return the buffer's device, or the sharding of a buffer over several devices."""
        return _jaxlib.device_of(buffer)

    def bound_to(self, buffer: Any) -> Any:
        """Return the device or sharding that a buffer is bound to (in jaxlib's word, committed to), or None."""
        return _jaxlib.device_of(buffer) if _jaxlib.is_committed(buffer) else None

    def evaluate(self, primitive: Any, arrays: Any, params: Any) -> list[Any]:
        """Compile an operation by itself for its operands' devices, and run it."""
        return dispatched(primitive, arrays, params, _HERE)

    def run_program(self, closed: Any, arrays: Any, name: str) -> list[Any] | None:
        """Compile a program of eager operations and run it."""
        return run_program(closed, arrays, name)

    def is_ready(self, buffer: Any) -> bool:
        """Return whether XLA has computed the buffer."""
        return _jaxlib.is_ready(buffer)

    def block_until_ready(self, buffers: Any) -> None:
        """Wait until XLA has computed the buffers."""
        _jaxlib.block_until_ready(buffers)

    def compile(
        self,
        closed: ClosedJaxpr,
        *,
        name: str,
        platform: str | None = None,
        options: CompileOptions = DEFAULT_OPTIONS,
    ) -> XlaExecutable:
        """Compile a program by XLA."""
        from corejax_xla_backend._xla.compiling import compile_program  # a dispatcher needs the backend before

        device = self.default_device(platform) if options.device is None else options.device
        if options.devices:
            device = options.devices[0]
        consts = [buffer_of(as_array(c), self) for c in closed.consts]
        return compile_program(closed, name, device, consts, options)

    def lower(
        self,
        closed: ClosedJaxpr,
        *,
        name: str,
        platform: str | None = None,
        options: CompileOptions = DEFAULT_OPTIONS,
    ) -> Lowering:
        """Lower a program to StableHLO."""
        from corejax_xla_backend._xla.compiling import lower

        if options.device is not None or options.devices:
            platform = (options.device or options.devices[0]).platform
        return lower(closed, name, platform or self.platform(), options)

    dispatcher = staticmethod(dispatch.dispatcher)
    # Static methods save a call: `is_deleted` runs for each donated array, `is_spread` in each eager operation.
    is_deleted = staticmethod(_jaxlib.is_deleted)
    is_spread = staticmethod(_jaxlib.is_spread)
    other_memory_of = staticmethod(_jaxlib.other_memory_of)


XLA = XlaBackend()
_HERE = Target(XLA, None)
