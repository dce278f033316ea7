"""XLA flags for quick compilation, at the cost of slower machine code."""

from __future__ import annotations

import functools
from typing import Any

from corejax_xla_backend._exit import inside

from ._classes import Client
from ._client import compile_options, device_list
from ._probe import FEATURES

QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
# Turns off XLA's fusion emitters for CPUs, in releases that still have the emitters that preceded them.
PLAIN_FUSIONS: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False} if FEATURES.plain_fusions else {}
# These flags give LLVM less code to compile, which halves the remaining time. Not every release has them.
_ON_CPUS: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


@functools.cache
def quick_flags(client: Client) -> tuple[tuple[str, Any], ...]:
    """Return the flags that turn optimisations off, as pairs of name and value, as far as this release has them."""
    known = {k: v for k, v in _ON_CPUS.items() if client.platform == "cpu" and _has_flag(client, k, v)}
    return tuple((QUICK | known).items())


def _has_flag(client: Client, name: str, value: Any) -> bool:
    from ._mlir import parse_module  # as in `name_of`

    # XLA has no query for flags: compile an empty program and see whether XLA rejects the name.
    device = client.local_devices()[0]
    options = compile_options(device, overrides=[(name, value)])
    try:
        with inside():
            client.compile_and_load(parse_module("func.func public @main() { return }"), device_list(device), options)
    except Exception as error:  # the exception's type differs between releases
        if name in str(error):
            return False
        raise
    return True
