"""`pure_callback`: call a Python function of arrays, without side effects, from programs."""

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
    tags=("value_types",),
    doc="Call a Python function without side effects. Params: callback, out_types (types of its results), vmap_method.",
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

    The function may be called any number of times, or not at all, and in any order. Its exceptions reach the caller
    unchanged. The callback has no derivative: define one with `custom_jvp` or `custom_vjp`.

    Args:
        callback: the function; its arguments are pytrees of `Array`s on the host.
        result_shape_dtypes: the type of the result: a pytree of objects with `shape` and `dtype`.
        args: positional arguments of the callback.
        sharding: the device that calls the function: None or a sharding on a single device.
        vmap_method: how `vmap` calls the function.

            - None: `vmap` raises an error.
            - "sequential": once for each element, in a loop.
            - "sequential_unrolled": once for each element, without a loop.
            - "expand_dims": once, with a leading batch axis on each argument, of size 1 if the argument is not batched.
            - "broadcast_all": once, with a leading batch axis of full size on each argument.
            - "legacy_vectorized": once, with a leading batch axis on the batched arguments only.

            If the function is called once, its result has the batch as the leading axis.
        kwargs: keyword arguments of the callback.

    Returns:
        A pytree of arrays with the structure and types of `result_shape_dtypes`.

    Raises:
        TypeError: the callback is not callable, an argument is not an array, or the result does not have the structure,
            shapes and dtypes of `result_shape_dtypes`.
        ValueError: `vmap_method` is unknown.
        NotDifferentiableError: the callback is differentiated.
        NotImplementedError: the callback is mapped without a `vmap_method`.
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(f"pure_callback: vmap_method must be one of {VMAP_METHODS} or None, got {vmap_method!r}")
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
    """Call the function for a batch by `vmap_method`."""
    bind = functools.partial(pure_callback_p.bind, callback=callback, vmap_method=vmap_method)
    if vmap_method is None:
        error = NotImplementedError(
            f"vmap of pure_callback: choose how the callback {callback.name!r} handles a batch: pass vmap_method, one "
            f"of {VMAP_METHODS}"
        )
        note_origin(error, pure_callback_p, callback.description(), replayed_source())
        raise error
    if vmap_method in ("sequential", "sequential_unrolled"):
        one = functools.partial(bind, out_types=out_types)
        unrolled = vmap_method == "sequential_unrolled"
        return one_by_one(one, axis_size, vals, dims, out_types, unrolled=unrolled)
    return all_at_once(bind, axis_size, vals, dims, out_types, vmap_method)


_NO_DERIVATIVE = "Pure callbacks do not support JVP. Define one with custom_jvp or custom_vjp around pure_callback"
refuse_derivatives(pure_callback_p, _NO_DERIVATIVE)
register_call(pure_callback_p)
