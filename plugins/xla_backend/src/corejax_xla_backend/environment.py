"""`corejax.print_environment_info`: versions and devices, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

from corejax_xla_backend import _devices


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, processes and devices, for bug reports; this starts the default backend.

    Args:
        return_string: whether to return the text in place of printing it.
    """
    devices = _devices.devices()
    listed = [*map(repr, devices[:8]), *(["..."] if len(devices) > 8 else [])]
    lines = {
        **{name: version(name) for name in ("corejax", "jaxlib", "numpy", "ml-dtypes")},
        "python": sys.version.replace("\n", ""),
        "platform": platform.platform(),
        "devices": f"{len(devices)}, of kind {devices[0].device_kind}: [{', '.join(listed)}]",
        "processes": f"{_devices.process_count()}, this one is number {_devices.process_index()}",
    }
    text = "\n".join(f"{name + ':':<11}{value}" for name, value in lines.items())
    if return_string:
        return text
    print(text)
    return None
