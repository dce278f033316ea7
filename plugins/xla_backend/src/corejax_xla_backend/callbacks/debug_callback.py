"""`debug.callback`: Python functions that look at values and change none, and the primitives behind them.

They are called with primal values, once for each element of a batch, and once where a checkpoint computes again.
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
    effects=("debug",),
    doc="Call a Python function that gives nothing back, in no order. Params: callback, partitioned.",
)
ordered_debug_callback_p = Primitive(
    "ordered_debug_callback",
    multiple_results=True,
    effects=("ordered:debug",),
    doc="Call a Python function that gives nothing back, after those before it. Params: callback, partitioned.",
)


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with values, eagerly and from compiled programs; what it gives is not looked at.

    `vmap` calls it for each element, in their order. Under `grad` it gets the primal values, and is called once.

    Args:
        callback: function of arrays, and of whatever else the arguments are. Without it, the result is a function
            `(callback, *args, **kwargs)` with these options, for callbacks whose keyword arguments have their names.
        args: its arguments; what is no array is handed over as it is.
        ordered: whether it is called after the ordered callbacks before it, in loops and branches too.
        partitioned: whether in a program over several devices each one calls it, with its parts of the arrays, as fast
            as it comes there; without, the first one calls it, with whole arrays. Ordered ones are called by one.
        kwargs: its keyword arguments.

    Raises:
        TypeError: the callback is no function.
    """
    if callback is not None:
        return call("debug.callback", callback, args, kwargs, ordered, partitioned=partitioned)
    if args or kwargs:
        raise TypeError(f"debug.callback: without a callback there are no arguments for it, got {args} and {kwargs}")
    return lambda callback, /, *args, **kwargs: call(
        "debug.callback", callback, args, kwargs, ordered, partitioned=partitioned
    )


def is_array(x: Any) -> bool:
    """Whether a value can be an operand; numbers that no dtype holds cannot."""
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
    """Bind one of the primitives, of the leaves that are operands, arrays; the others are part of the callback."""
    check_callable(api, fun)
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    arrays = [is_operand(x) for x in leaves]
    fixed = [(i, x) for i, (x, known) in enumerate(zip(leaves, arrays, strict=True)) if not known]
    primitive = ordered_debug_callback_p if ordered else debug_callback_p
    operands = [x for x, known in zip(leaves, arrays, strict=True) if known]
    primitive.bind(*operands, callback=HostFunction(api, fun, in_tree, fixed), partitioned=partitioned)


for _primitive in (debug_callback_p, ordered_debug_callback_p):
    register_call(_primitive)
    register_observer(_primitive)
    register_one_by_one(_primitive)
