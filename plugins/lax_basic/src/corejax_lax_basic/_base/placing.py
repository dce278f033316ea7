"""The argument `out_sharding` of functions: the sharding of their result."""

from __future__ import annotations

from typing import Any

from corejax.extend.messages import PluginMissingError
from corejax.extend.plugins import exported, install_advice

__all__ = ["place"]  # in `corejax.lax`, for other plugins


def place(what: str, x: Any, out_sharding: Any) -> Any:
    """Shard the result of a function, by `lax.with_sharding_constraint`.

    Args:
        what: the function, for messages.
        x: the result, an array or a pytree of arrays.
        out_sharding: a sharding, or a `PartitionSpec` over the mesh of the context; None returns the result unchanged.

    Raises:
        TypeError: `out_sharding` is not a sharding.
        ValueError: `out_sharding` does not fit the result.
        RuntimeError: `out_sharding` is a `PartitionSpec`, and the context has no mesh.
        PluginMissingError: no plugin provides shardings.
    """
    if out_sharding is None:
        return x
    constrain = exported("lax.with_sharding_constraint")
    if constrain is None:
        advice = install_advice("names", "lax.with_sharding_constraint")
        raise PluginMissingError(f"{what}: out_sharding needs a plugin that provides shardings{advice}")
    try:
        return constrain(x, out_sharding)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error).removeprefix("with_sharding_constraint: ").removeprefix("shardings: ")
        raise type(error)(f"{what}: out_sharding: {reason}") from None
