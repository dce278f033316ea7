"""`debug.callback`: Python functions that observe values, and their primitives.

They are called with primal values, once for each element of a batch, and again if a checkpoint recomputes the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive, get_aval, is_array_like, tree
from corejax_xla_backend.callbacks.host_function import HostFunction, check_callable
from corejax_xla_backend.callbacks.rules import register_call, register_observer, register_one_by_one

debug_callback_p = Primitive(
    "debug_callback",
    multiple_results=True,
    tags=("value_types",),
    effects=("debug",),
    doc="Call a Python function that returns nothing, in any order. Params: callback, partitioned.",
)
ordered_debug_callback_p = Primitive(
    "ordered_debug_callback",
    multiple_results=True,
    tags=("value_types",),
    effects=("ordered:debug",),
    doc="Call a Python function that returns nothing, in program order. Params: callback, partitioned.",
)


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with values, eagerly and from compiled programs, and ignore its result.

    `vmap` calls the function for each element, in order. Under `grad` the function gets the primal values, and is
    called once.

    Args:
        callback: the function. If it is omitted, the result is a function `(callback, *args, **kwargs)` with these
            options, for callbacks with keyword arguments named as the options.
        args: positional arguments of the callback; leaves that are not arrays are passed unchanged.
        ordered: whether the call comes after the ordered callbacks before it, also in loops and branches.
        partitioned: whether, in a program over several devices, each device calls the function with its parts of the
            arrays, in any order. Otherwise the first device calls it with whole arrays. Ordered callbacks are called
            by one device.
        kwargs: keyword arguments of the callback.

    Raises:
        TypeError: the callback is not callable.
    """
    if callback is not None:
        return call("debug.callback", callback, args, kwargs, ordered, partitioned=partitioned)
    if args or kwargs:
        raise TypeError(f"debug.callback: arguments without a callback, got {args} and {kwargs}")
    return lambda callback, /, *args, **kwargs: call(
        "debug.callback", callback, args, kwargs, ordered, partitioned=partitioned
    )


def is_array(x: Any) -> bool:
    """Return whether a value can be an operand; numbers that no dtype can represent cannot."""
    try:
        return is_array_like(x) and get_aval(x) is not None
    except (TypeError, OverflowError):
        return False


def call(
    api: str,
    fun: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ordered: bool,
    is_operand: Callable[[Any], bool] = is_array,
    partitioned: bool = False,
) -> None:
    """Bind one of the primitives to the leaves that are operands; the other leaves become part of the callback."""
    check_callable(api, fun)
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    flags = [is_operand(x) for x in leaves]
    fixed = [(i, x) for i, (x, flag) in enumerate(zip(leaves, flags, strict=True)) if not flag]
    primitive = ordered_debug_callback_p if ordered else debug_callback_p
    operands = [x for x, flag in zip(leaves, flags, strict=True) if flag]
    primitive.bind(*operands, callback=HostFunction(api, fun, in_tree, fixed), partitioned=partitioned)


for _primitive in (debug_callback_p, ordered_debug_callback_p):
    register_call(_primitive)
    register_observer(_primitive)
    register_one_by_one(_primitive)
