"""How a compiled program tells where a value is: XLA's partitioner does, or on one device a call back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import ShapedArray, xla_translations
from corejax_xla_backend._lowering.custom_calls import quoted_bytes
from corejax_xla_backend._lowering.host_callback import from_impl
from corejax_xla_backend.callbacks.host_function import HostFunction
from corejax_xla_backend.callbacks.inspect_sharding import inspect_sharding_p

_called_back = from_impl(inspect_sharding_p)


@xla_translations.register(inspect_sharding_p)
def inspect_sharding_translation(
    ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, callback: HostFunction
) -> list[Any]:
    """XLA's own operation for it."""
    like, count = ctx.module.meshes.like, ctx.module.meshes.count
    if like is None:
        return list(_called_back(ctx, in_avals, in_vals, callback=callback))
    from corejax_xla_backend import _jaxlib

    def told(tiles: Any) -> None:
        callback.run(inspect_sharding_p, [like(tiles)])

    config = quoted_bytes(_jaxlib.inspecting(told, in_avals[0].ndim, count))
    attrs = f'call_target_name = "InspectSharding", has_side_effect = true, backend_config = {config}'
    ctx.op("custom_call", *in_vals, out=in_avals[0], attrs=attrs)
    return []
