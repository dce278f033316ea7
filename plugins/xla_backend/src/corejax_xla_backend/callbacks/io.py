"""`io_callback`: a Python function with side effects, called exactly as often as the program says."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    impl_rules,
    jvp_rules,
    nondifferentiable,
    note_origin,
    physical_rules,
    replayed_source,
    transpose_rules,
    tree,
    vmap_rules,
    xla_translations,
)
from corejax_xla_backend._vmap_methods import one_by_one
from corejax_xla_backend.callbacks.host_function import HostFunction, host_function, of_numbers
from corejax_xla_backend.callbacks.placement import check_placement

Types = tuple[ShapedArray, ...]

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
    check_placement("io_callback", sharding)
    function, operands, types = host_function("io_callback", callback, result_shape_dtypes, args, kwargs)
    primitive = ordered_io_callback_p if ordered else io_callback_p
    outs = primitive.bind(*operands, callback=function, out_types=types)
    return tree.tree_unflatten(tree.tree_structure(result_shape_dtypes), outs)


def _impl(*arrays: Array, callback: HostFunction, out_types: Types, primitive: Primitive) -> list[Any]:
    return callback.run(primitive, arrays, out_types)


def _type(*avals: ShapedArray, callback: HostFunction, out_types: Types) -> Types:
    return out_types


_NO_DERIVATIVE = (
    "IO callbacks do not support JVP. Give one with custom_jvp or custom_vjp around io_callback, or call "
    "debug.callback, which gives nothing back"
)


def _physical(avals: Any, *numbers: Any, callback: HostFunction, out_types: Types, primitive: Primitive) -> Any:
    """The callback makes keys of their words."""
    return primitive.bind(*numbers, callback=of_numbers(callback, avals), out_types=out_types)


def _give_rules(primitive: Primitive) -> None:
    impl_rules.register(primitive, functools.partial(_impl, primitive=primitive), device=True)
    abstract_eval_rules.register(primitive, _type)
    jvp_rules.register(primitive, nondifferentiable(_NO_DERIVATIVE))
    transpose_rules.register(primitive, nondifferentiable(_NO_DERIVATIVE))
    physical_rules.register(primitive, functools.partial(_physical, primitive=primitive))
    xla_translations.register(primitive, by="host callback")


for _primitive in (io_callback_p, ordered_io_callback_p):
    _give_rules(_primitive)


@vmap_rules.register(io_callback_p)
def io_callback_vmap(
    axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], *, callback: HostFunction, out_types: Types
) -> tuple[list[Any], list[int]]:
    """One call for each element."""
    bind = functools.partial(io_callback_p.bind, callback=callback, out_types=out_types)
    return one_by_one(bind, axis_size, vals, dims, out_types)


@vmap_rules.register(ordered_io_callback_p)
def ordered_io_callback_vmap(
    axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], *, callback: HostFunction, out_types: Types
) -> Any:
    """Refused: one program for a whole batch has no order between its elements."""
    error = ValueError(
        f"vmap of an ordered io_callback, of {callback.name!r}: the elements of a batch have no order. Use "
        "ordered=False, or lax.map in the place of vmap"
    )
    note_origin(error, ordered_io_callback_p, callback.description(), replayed_source())
    raise error
