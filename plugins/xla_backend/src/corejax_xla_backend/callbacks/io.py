"""`io_callback`: call a Python function with side effects, exactly as often as the program does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Primitive, tree, vmap_rules
from corejax.extend.messages import note_origin
from corejax.extend.transforms import replayed_source
from corejax_xla_backend.callbacks.host_function import HostFunction, host_function
from corejax_xla_backend.callbacks.rules import refuse_derivatives, register_call, register_one_by_one

_PARAMS = "Params: callback, out_types (types of its results)."
io_callback_p = Primitive(
    "io_callback",
    multiple_results=True,
    tags=("value_types",),
    effects=("io",),
    doc=f"Call a Python function with side effects, in any order. {_PARAMS}",
)
ordered_io_callback_p = Primitive(
    "ordered_io_callback",
    multiple_results=True,
    tags=("value_types",),
    effects=("ordered:io",),
    doc=f"Call a Python function with side effects, in program order. {_PARAMS}",
)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function that may have side effects, eagerly and from compiled programs.

    Each call in the program calls the function once, even if the result is not used. Exceptions of the function reach
    the caller unchanged.

    Args:
        callback: the function; its arguments are pytrees of `Array`s on the host.
        result_shape_dtypes: the type of the result: a pytree of objects with `shape` and `dtype`; None if there is no
            result.
        args: positional arguments of the callback.
        sharding: the device that calls the function: None or a sharding on a single device.
        ordered: whether the call keeps its order relative to other ordered callbacks, also in loops and branches.
            Unordered callbacks are called in any order. Ordered callbacks cannot be mapped.
        kwargs: keyword arguments of the callback.

    Returns:
        A pytree of arrays with the structure and types of `result_shape_dtypes`.

    Raises:
        TypeError: the callback is not callable, an argument is not an array, or the result does not have the structure,
            shapes and dtypes of `result_shape_dtypes`.
        NotDifferentiableError: an argument is differentiated.
        ValueError: an ordered callback is mapped.
    """
    function, operands, types = host_function("io_callback", callback, result_shape_dtypes, args, kwargs, sharding)
    primitive = ordered_io_callback_p if ordered else io_callback_p
    outs = primitive.bind(*operands, callback=function, out_types=types)
    return tree.tree_unflatten(tree.tree_structure(result_shape_dtypes), outs)


_NO_DERIVATIVE = (
    "IO callbacks do not support JVP. Define one with custom_jvp or custom_vjp around io_callback, or call "
    "debug.callback, which returns nothing"
)


for _primitive in (io_callback_p, ordered_io_callback_p):
    register_call(_primitive)
    refuse_derivatives(_primitive, _NO_DERIVATIVE)
register_one_by_one(io_callback_p)


@vmap_rules.register(ordered_io_callback_p)
def ordered_io_callback_vmap(
    axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], *, callback: HostFunction, **params: Any
) -> Any:
    """Raise ValueError: a program for a whole batch has no order between the batch's elements."""
    error = ValueError(
        f"vmap of an ordered io_callback, of {callback.name!r}: the elements of a batch have no order. Use "
        "ordered=False, or lax.map instead of vmap"
    )
    note_origin(error, ordered_io_callback_p, callback.description(), replayed_source())
    raise error
