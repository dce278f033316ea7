"""`corejax.experimental.shard_map`: `shard_map` with the arguments that it had before it was `corejax.shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax_parallel.mapping import shard_map as current

__all__ = ["shard_map"]


def shard_map(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True) -> Any:
    """`corejax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)`."""
    return current.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
