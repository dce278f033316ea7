"""The argument `out_sharding` of functions: where their result is to be."""

from __future__ import annotations

from typing import Any

from corejax.extend.messages import PluginMissingError
from corejax.extend.plugins import exported, install_advice

__all__ = ["place"]  # in `corejax.lax`, for other plugins


def place(what: str, x: Any, out_sharding: Any) -> Any:
    """Lay the result of a function out over devices, by `lax.with_sharding_constraint`.

    Args:
        what: the function, for messages.
        x: the result, an array or a pytree of arrays.
        out_sharding: a sharding, or a `PartitionSpec` over the mesh of the context; None leaves the result as it is.

    Raises:
        TypeError: it is not a sharding.
        ValueError: it does not fit the result.
        RuntimeError: it is a `PartitionSpec`, and the context has no mesh.
        PluginMissingError: no plugin has shardings.
    """
    if out_sharding is None:
        return x
    constrain = exported("lax.with_sharding_constraint")
    if constrain is None:
        advice = install_advice("names", "lax.with_sharding_constraint")
        raise PluginMissingError(f"{what}: out_sharding needs a plugin that has shardings{advice}")
    try:
        return constrain(x, out_sharding)
    except (TypeError, ValueError, RuntimeError) as error:
        said = str(error).removeprefix("with_sharding_constraint: ").removeprefix("shardings: ")
        raise type(error)(f"{what}: out_sharding: {said}") from None
