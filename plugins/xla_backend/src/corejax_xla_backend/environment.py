"""`corejax.print_environment_info`: what a report of a fault begins with."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

from corejax_xla_backend import _devices


def print_environment_info(return_string: bool = False) -> str | None:
    """Versions, processes and devices, for reports of faults: the default backend is started.

    Args:
        return_string: whether the text is returned, and not printed.
    """
    found = _devices.devices()
    shown = [*map(repr, found[:8]), *(["..."] if len(found) > 8 else [])]
    lines = {
        **{name: version(name) for name in ("corejax", "jaxlib", "numpy", "ml-dtypes")},
        "python": sys.version.replace("\n", ""),
        "platform": platform.platform(),
        "devices": f"{len(found)}, of kind {found[0].device_kind}: [{', '.join(shown)}]",
        "processes": f"{_devices.process_count()}, this one is number {_devices.process_index()}",
    }
    text = "\n".join(f"{name + ':':<11}{value}" for name, value in lines.items())
    if return_string:
        return text
    print(text)
    return None
