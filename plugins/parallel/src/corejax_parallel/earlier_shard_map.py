"""`corejax.experimental.shard_map`: `shard_map` with its former arguments, positional and with `check_rep`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax_parallel.mapping import shard_map as current

__all__ = ["shard_map"]


def shard_map(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True) -> Any:
    """Return `corejax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)`."""
    return current.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
