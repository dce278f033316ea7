"""`io_callback`: a Python function with side effects, called exactly as often as the program says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Primitive, tree, vmap_rules
from corejax.extend.messages import note_origin
from corejax.extend.transforms import replayed_source
from corejax_xla_backend.callbacks.host_function import HostFunction, host_function
from corejax_xla_backend.callbacks.rules import refuse_derivatives, register_call, register_one_by_one

_PARAMS = "Params: callback, out_types (of its results)."
io_callback_p = Primitive(
    "io_callback",
    multiple_results=True,
    effects=("io",),
    doc=f"Call a Python function with side effects, in no order. {_PARAMS}",
)
ordered_io_callback_p = Primitive(
    "ordered_io_callback",
    multiple_results=True,
    effects=("ordered:io",),
    doc=f"Call a Python function with side effects, after those before it. {_PARAMS}",
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

    It is called as often as the program says, whoever uses the result. What it raises reaches the caller as it is.

    Args:
        callback: function of arrays (`Array`s on the host, in pytrees).
        result_shape_dtypes: its result's type: a pytree of things with `shape` and `dtype`; None if it gives nothing.
        args: its arguments.
        sharding: where it is called; of one device.
        ordered: whether it is called after the ordered callbacks before it and before those after it, in loops and
            branches too. Others are called in any order. Ordered ones cannot be mapped.
        kwargs: its keyword arguments.

    Returns:
        Arrays of the types promised, in their structure.

    Raises:
        TypeError: the callback is no function, an argument is not an array, or the result has another structure, shape
            or dtype than it was promised to have.
        NotDifferentiableError: an argument was differentiated.
        ValueError: an ordered one was mapped.
    """
    function, operands, types = host_function("io_callback", callback, result_shape_dtypes, args, kwargs, sharding)
    primitive = ordered_io_callback_p if ordered else io_callback_p
    outs = primitive.bind(*operands, callback=function, out_types=types)
    return tree.tree_unflatten(tree.tree_structure(result_shape_dtypes), outs)


_NO_DERIVATIVE = (
    "IO callbacks do not support JVP. Give one with custom_jvp or custom_vjp around io_callback, or call "
    "debug.callback, which gives nothing back"
)


for _primitive in (io_callback_p, ordered_io_callback_p):
    register_call(_primitive)
    refuse_derivatives(_primitive, _NO_DERIVATIVE)
register_one_by_one(io_callback_p)


@vmap_rules.register(ordered_io_callback_p)
def ordered_io_callback_vmap(
    axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], *, callback: HostFunction, **params: Any
) -> Any:
    """Refused: one program for a whole batch has no order between its elements."""
    error = ValueError(
        f"vmap of an ordered io_callback, of {callback.name!r}: the elements of a batch have no order. Use "
        "ordered=False, or lax.map in the place of vmap"
    )
    note_origin(error, ordered_io_callback_p, callback.description(), replayed_source())
    raise error
