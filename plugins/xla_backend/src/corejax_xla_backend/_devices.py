"""What users ask of devices: `corejax.devices`, `device_put` and the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Array, Device, Tracer, as_array, backends, placed, tree


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend or of a platform ("cpu", "cuda"), by default of the default one."""
    found, platform = backends.find(backend)
    return list(found.devices(platform))


def default_backend() -> str:
    """The platform that programs are compiled for unless told otherwise."""
    found, platform = backends.find()
    return platform or found.platform()


def device_put(x: Any, device: Device | None = None) -> Any:
    """Arrays (in a pytree) on a device: the default device unless given. Values on the way there are not waited for."""
    backend = backends.find().backend if device is None else backends.of_device(device)

    def put(leaf: Any) -> Any:
        return leaf if isinstance(leaf, Tracer) else placed(as_array(leaf), backend, device)

    return tree.tree_map(put, x)


def device_get(x: Any) -> Any:
    """Arrays (in a pytree) as NumPy arrays on the host."""
    return tree.tree_map(lambda leaf: np.asarray(leaf) if type(leaf) is Array else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays of a pytree hold their values; returns it."""
    waiting: dict[Any, list[Any]] = {}
    for leaf in tree.tree_leaves(x):
        if type(leaf) is Array and leaf._host is None:
            waiting.setdefault(backends.of_buffer(leaf._buf), []).append(leaf._buf)
    for backend, buffers in waiting.items():
        backend.block_until_ready(buffers)
    return x
