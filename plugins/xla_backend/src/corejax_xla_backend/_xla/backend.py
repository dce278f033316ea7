"""The backend `xla`: programs through StableHLO to XLA, on the devices that jaxlib knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Backend, Capabilities, ClosedJaxpr, ShapedArray, as_array, buffer_of, clears_cache
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._xla import dispatch, executable
from corejax_xla_backend._xla.buffers import put

clears_cache(_jaxlib.forget_readers)


class XlaBackend(Backend):
    """XLA through jaxlib. Importing this module imports jaxlib; devices are asked for when something is on them."""

    name = "xla"
    capabilities = Capabilities(("cpu", "cuda", "gpu", "host"), lowering="StableHLO", dispatcher=True)
    buffer_type = _jaxlib.Buffer
    device_type = _jaxlib.Device

    def platform(self) -> str:
        """CUDA where it starts, else the CPU."""
        return _jaxlib.default_backend()

    def devices(self, platform: str | None = None) -> list[Any]:
        """jaxlib's."""
        return _jaxlib.devices(platform)

    def _device(self, platform: str | None) -> Any:
        return _jaxlib.default_device() if platform is None else self.devices(platform)[0]

    def put(self, value: Any, aval: ShapedArray, device: Any = None) -> Any:
        """The buffer shares the array's memory where it can."""
        if not isinstance(value, np.ndarray):
            return _jaxlib.copy_to(value, self._device(None) if device is None else device)
        return put(value, aval, device, alias=True)

    def fetch(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A view of the buffer's memory where that is on the host."""
        return _jaxlib.to_numpy(buffer)

    def device_of(self, buffer: Any) -> Any:
        """The one device."""
        return _jaxlib.device_of(buffer)

    def block_until_ready(self, buffers: Any) -> None:
        """Wait."""
        _jaxlib.block_until_ready(buffers)

    def compile(self, closed: ClosedJaxpr, *, name: str, platform: str | None = None) -> executable.XlaExecutable:
        """By XLA."""
        consts = [buffer_of(as_array(c), self) for c in closed.consts]
        return executable.compile_program(closed, name, self._device(platform), consts)

    def lower(self, closed: ClosedJaxpr, *, name: str, platform: str | None = None) -> executable.Lowering:
        """StableHLO."""
        return executable.lower(closed, name, platform or self.platform())

    dispatcher = staticmethod(dispatch.dispatcher)


XLA = XlaBackend()
