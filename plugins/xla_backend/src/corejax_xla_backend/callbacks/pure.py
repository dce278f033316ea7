"""`pure_callback`: a Python function of arrays, without side effects, in the middle of programs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Primitive, ShapedArray, tree, vmap_rules
from corejax.extend.messages import note_origin
from corejax.extend.transforms import replayed_source
from corejax_xla_backend._vmap_methods import all_at_once, one_by_one
from corejax_xla_backend.callbacks.host_function import HostFunction, host_function
from corejax_xla_backend.callbacks.rules import refuse_derivatives, register_call

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")

pure_callback_p = Primitive(
    "pure_callback",
    multiple_results=True,
    doc="Call a Python function without side effects. Params: callback, out_types (of its results), vmap_method.",
)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function that has no side effects, eagerly and from compiled programs.

    It may be called more often than it looks, or not at all, and in any order. What it raises reaches the caller as it
    is. It has no derivative: give one with `custom_jvp` or `custom_vjp`.

    Args:
        callback: function of arrays (`Array`s on the host, in pytrees).
        result_shape_dtypes: its result's type: a pytree of things with `shape` and `dtype`.
        args: its arguments.
        sharding: where it is called; of one device.
        vmap_method: what `vmap` does. None: it refuses. "sequential": one call for each element, in a loop;
            "sequential_unrolled": without the loop. "expand_dims": one call, where batches are leading axes, of size
            1 where an argument is not batched; "broadcast_all": of full size everywhere. "legacy_vectorized": arguments
            that are not batched stay as they are. The result of one call has the batch as its leading axis.
        kwargs: its keyword arguments.

    Returns:
        Arrays of the types promised, in their structure.

    Raises:
        TypeError: the callback is no function, an argument is not an array, or the result has another structure, shape
            or dtype than it was promised to have.
        ValueError: there is no such `vmap_method`.
        NotDifferentiableError: it was differentiated.
        NotImplementedError: it was mapped without `vmap_method`.
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(f"pure_callback: vmap_method is one of {VMAP_METHODS} or None, got {vmap_method!r}")
    function, operands, types = host_function("pure_callback", callback, result_shape_dtypes, args, kwargs, sharding)
    outs = pure_callback_p.bind(*operands, callback=function, out_types=types, vmap_method=vmap_method)
    return tree.tree_unflatten(tree.tree_structure(result_shape_dtypes), outs)


@vmap_rules.register(pure_callback_p)
def pure_callback_vmap(
    axis_size: int,
    vals: Sequence[Any],
    dims: Sequence[int | None],
    *,
    callback: HostFunction,
    out_types: tuple[ShapedArray, ...],
    vmap_method: str | None,
) -> tuple[list[Any], list[int]]:
    """By the method."""
    bind = functools.partial(pure_callback_p.bind, callback=callback, vmap_method=vmap_method)
    if vmap_method is None:
        error = NotImplementedError(
            f"vmap of pure_callback: say how the callback {callback.name!r} takes a batch, by vmap_method, one of "
            f"{VMAP_METHODS}"
        )
        note_origin(error, pure_callback_p, callback.description(), replayed_source())
        raise error
    if vmap_method in ("sequential", "sequential_unrolled"):
        one = functools.partial(bind, out_types=out_types)
        unrolled = vmap_method == "sequential_unrolled"
        return one_by_one(one, axis_size, vals, dims, out_types, unrolled=unrolled)
    return all_at_once(bind, axis_size, vals, dims, out_types, vmap_method)


_NO_DERIVATIVE = "Pure callbacks do not support JVP. Give one with custom_jvp or custom_vjp around pure_callback"
refuse_derivatives(pure_callback_p, _NO_DERIVATIVE)
register_call(pure_callback_p)
