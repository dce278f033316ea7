"""`debug.inspect_array_sharding`: where a value lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    impl_rules,
    is_array_like,
    jvp_rules,
    transpose_rules,
    tree,
    vmap_rules,
)
from corejax_xla_backend.callbacks.host_function import HostFunction, check_callable


class OneDevice(NamedTuple):
    """The sharding of an array on one device."""

    device: Any

    @property
    def device_set(self) -> set[Any]:
        """The device."""
        return {self.device}


inspect_sharding_p = Primitive(
    "inspect_sharding",
    multiple_results=True,
    effects=("debug",),
    doc="Call a Python function with the sharding of a value. Params: callback.",
)


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], Any]) -> None:
    """Call a function with the sharding of a value.

    In a program over several devices it is called when that is compiled, and XLA has chosen; in one on one device
    whenever it runs.

    Args:
        value: an array.
        callback: function of a sharding; what it gives is not looked at.

    Raises:
        TypeError: it is no array, or the callback is no function.
    """
    check_callable("debug.inspect_array_sharding", callback)
    if not is_array_like(value):
        raise TypeError(f"debug.inspect_array_sharding takes an array, got {value!r} of type {type(value).__name__}")
    function = HostFunction("debug.inspect_array_sharding", callback, tree.tree_structure(((0,), {})))
    inspect_sharding_p.bind(value, callback=function)


@impl_rules.register(inspect_sharding_p, device=True)
def inspect_sharding_impl(value: Array, *, callback: HostFunction) -> list[Any]:
    """Call it with the array's sharding, or where arrays have none with its device."""
    return callback.run(inspect_sharding_p, [getattr(value, "sharding", None) or OneDevice(value.device)])


@abstract_eval_rules.register(inspect_sharding_p)
def inspect_sharding_type(value: ShapedArray, *, callback: HostFunction) -> Sequence[ShapedArray]:
    """Nothing."""
    return ()


@jvp_rules.register(inspect_sharding_p, symbolic_zeros=True)
def inspect_sharding_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, callback: HostFunction) -> Any:
    """Of the primal value."""
    return inspect_sharding_p.bind(*primals, callback=callback), []


@vmap_rules.register(inspect_sharding_p)
def inspect_sharding_vmap(
    axis_size: int, vals: Any, dims: Any, *, callback: HostFunction
) -> tuple[list[Any], list[Any]]:
    """Of the batch."""
    return inspect_sharding_p.bind(*vals, callback=callback), []


@transpose_rules.register(inspect_sharding_p, symbolic_zeros=True)
def inspect_sharding_transpose(cts: Sequence[Any], value: Any, *, callback: HostFunction) -> list[None]:
    """It gives nothing, so nothing comes back."""
    return [None]
