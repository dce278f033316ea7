"""The fingerprint of everything that a compiled program depends on besides its own text."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jaxlib.version

from ._classes import Device
from ._client import compile_options
from ._probe import xla_client


def compilation_fingerprint(device: Device, overrides: Sequence[tuple[str, Any]] = (), partitions: Any = None) -> bytes:
    """Return bytes that are equal only if XLA compiles equal modules to the same executable.

    The bytes contain the versions of jaxlib and the platform, the kind and number of devices, the machine's
    instruction sets, and XLA's options, including those from ``XLA_FLAGS``.

    Args:
        device: the device to compile for, unless `partitions` names several.
        overrides: XLA flags by name.
        partitions: `_partitioned.Partitions` of a program over several devices.
    """
    options = compile_options(device, overrides=overrides, partitions=partitions)
    return _fingerprint_of(device) + bytes(options.SerializeAsString())


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
    """Return jaxlib's description of the machine (0.12: a CPU's instruction sets), or b"" if it has none."""
    try:
        return bytes(xla_client.get_topology_for_devices([device]).serialize())
    except (AttributeError, RuntimeError):  # jaxlib 0.10; platforms that cannot serialise their topology
        return b""


def _instructions() -> str:
    """Return a description of the processor; on Linux with its instruction sets, which jaxlib 0.10 does not report."""
    kinds = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    facts = [platform.machine(), platform.processor()]
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.strip():  # the end of the first processor's entry; the others are alike
                    break
                name, _, value = line.partition(":")
                if name.strip() in kinds:
                    facts.append(value.strip())
    except OSError:
        pass
    return "\n".join(facts)
