"""Flags for machine code that is made fast, and need not be fast itself."""

from __future__ import annotations

import functools
from typing import Any

from ._client import Client, compile_options, device_list
from ._mlir import parse_module
from ._probe import FEATURES

QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
# With them LLVM is given less to do: half of the time that the others leave. Not in every release.
# Without the emitters that fusions have of their own on CPUs, where a release has the others, too.
PLAIN_FUSIONS: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False} if FEATURES.plain_fusions else {}
_ON_CPUS: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


@functools.cache
def quick_flags(client: Client) -> tuple[tuple[str, Any], ...]:
    """XLA's flags by name: few optimisations, as far as this release has switches for them."""
    more = {name: value for name, value in _ON_CPUS.items() if client.platform == "cpu" and _knows(client, name, value)}
    return tuple((QUICK | more).items())


def _knows(client: Client, name: str, value: Any) -> bool:
    device = client.local_devices()[0]
    options = compile_options(device, overrides=[(name, value)])
    try:
        client.compile_and_load(parse_module("func.func public @main() { return }"), device_list(device), options)
    except Exception as error:  # what jaxlib raises differs between releases
        if name in str(error):
            return False
        raise
    return True
