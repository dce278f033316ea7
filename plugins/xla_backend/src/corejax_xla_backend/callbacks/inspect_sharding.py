"""`debug.inspect_array_sharding`: call a function with the sharding of a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    impl_rules,
    is_array_like,
    tree,
    vmap_rules,
    xla_translations,
)
from corejax_xla_backend.callbacks.host_function import HostFunction, check_callable
from corejax_xla_backend.callbacks.rules import register_observer, register_type

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

inspect_sharding_p = Primitive(
    "inspect_sharding",
    multiple_results=True,
    effects=("debug",),
    doc="Call a Python function with the sharding of a value. Params: callback.",
)


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], Any]) -> None:
    """Call a function with the sharding of a value.

    In a program over several devices, the function is called when the program is compiled, with the sharding that XLA
    has chosen. In a program on one device, it is called at each run.

    Args:
        value: an array.
        callback: function of a sharding; its result is ignored.

    Raises:
        TypeError: the value is not an array, or the callback is not callable.
    """
    check_callable("debug.inspect_array_sharding", callback)
    if not is_array_like(value):
        raise TypeError(f"debug.inspect_array_sharding takes an array, got {value!r} of type {type(value).__name__}")
    function = HostFunction("debug.inspect_array_sharding", callback, tree.tree_structure(((0,), {})))
    inspect_sharding_p.bind(value, callback=function)


@impl_rules.register(inspect_sharding_p, device=True)
def inspect_sharding_impl(value: Array, *, callback: HostFunction) -> list[Any]:
    """Call the callback with the array's sharding."""
    return callback.run(inspect_sharding_p, [value.sharding])


register_type(inspect_sharding_p)
register_observer(inspect_sharding_p)
vmap_rules.register(
    inspect_sharding_p, lambda axis_size, vals, dims, **params: (inspect_sharding_p.bind(*vals, **params), [])
)


@xla_translations.register(inspect_sharding_p)
def inspect_sharding_translation(
    ctx: TranslationContext, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, callback: HostFunction
) -> list[Any]:
    """Emit XLA's `InspectSharding`, which its partitioner handles; on one device, emit an ordinary callback."""
    from corejax_xla_backend import _jaxlib
    from corejax_xla_backend._lowering.custom_calls import quoted_bytes
    from corejax_xla_backend._lowering.host_callback import from_impl

    like, count = ctx.module.meshes.like, ctx.module.meshes.count
    if like is None:
        return list(from_impl(inspect_sharding_p)(ctx, in_avals, in_vals, callback=callback))

    def on_tiles(tiles: Any) -> None:
        callback.run(inspect_sharding_p, [like(tiles)])

    config = quoted_bytes(_jaxlib.inspecting(on_tiles, in_avals[0].ndim, count))
    attrs = f'call_target_name = "InspectSharding", has_side_effect = true, backend_config = {config}'
    ctx.op("custom_call", *in_vals, out=in_avals[0], attrs=attrs)
    return []
