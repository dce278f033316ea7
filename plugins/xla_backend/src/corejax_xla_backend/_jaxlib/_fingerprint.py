"""What a compiled program depends on besides its own text."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jaxlib.version

from ._client import Device, compile_options
from ._probe import xla_client


def compilation_fingerprint(device: Device, overrides: Sequence[tuple[str, Any]] = (), partitions: Any = None) -> bytes:
    """Return bytes that are equal where XLA makes the same executable of the same module for a device.

    They tell jaxlib's version, the platform's, the kind and the number of devices, the machine's instructions, and
    XLA's options, those from ``XLA_FLAGS`` among them.
    """
    options = compile_options(device, overrides=overrides, partitions=partitions)
    return _fingerprint_of(device) + options.SerializeAsString()


@cache
def _fingerprint_of(device: Device) -> bytes:
    client = device.client
    facts = (
        jaxlib.version.__version__,
        client.platform,
        client.platform_version,
        client.device_count(),
        device.device_kind,
        getattr(device, "compute_capability", ""),
        _instructions(),
    )
    return "\n".join(map(str, facts)).encode() + _topology(device)


def _topology(device: Device) -> bytes:
    """What jaxlib tells of the machine (0.12: a CPU's instructions), empty where it tells nothing."""
    try:
        return xla_client.get_topology_for_devices([device]).serialize()
    except (AttributeError, RuntimeError):  # 0.10; platforms that do not serialise it
        return b""


def _instructions() -> str:
    """The machine's kind of processor; Linux knows its instruction sets, which jaxlib 0.10 does not tell."""
    kinds = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    found = [platform.machine(), platform.processor()]
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.strip():  # the others are like the first
                    break
                name, _, value = line.partition(":")
                if name.strip() in kinds:
                    found.append(value.strip())
    except OSError:
        pass
    return "\n".join(found)
