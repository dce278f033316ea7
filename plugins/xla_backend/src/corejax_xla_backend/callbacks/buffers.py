"""`buffer_callback`: call a Python function that writes its results into buffers."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corejax.extend import tree
from corejax.extend.messages import api_boundary
from corejax.extend.types import shaped_abstractify
from corejax_xla_backend.callbacks.io import io_callback
from corejax_xla_backend.callbacks.pure import pure_callback

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """The stage of a program in which a callback runs; here always EXECUTE."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a callback knows of the program that calls it."""

    @property
    def stage(self) -> ExecutionStage:
        """The stage of the program."""
        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """Raise ValueError: callbacks run on the host, which has no streams."""
        raise ValueError("a callback runs on the host, which has no stream")


class Buffer:
    """The memory of an array on the host: `numpy.asarray(buffer)` is a view of it, and DLPack another."""

    __slots__ = ("_array", "_writeable")

    def __init__(self, array: np.ndarray[Any, Any], writeable: bool) -> None:
        self._array = array
        self._writeable = writeable

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self._array.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the array."""
        return self._array.ndim

    @property
    def writeable(self) -> bool:
        """Whether the callback may write the memory: that of results, not that of arguments."""
        return self._writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        view = self._array.view()
        view.flags.writeable = self._writeable
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ValueError(f"a buffer of dtype {view.dtype.name} has no view of dtype {np.dtype(dtype).name}")
            return view.astype(dtype)
        return view.copy() if copy else view

    def __dlpack__(self, **options: Any) -> Any:
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        return f"Buffer({self.dtype.name}{list(self.shape)}{', writeable' if self._writeable else ''})"


def buffer_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """Return a function of arrays that calls a Python function, which writes the results into buffers.

    The callback has no derivative: define one with `custom_jvp` or `custom_vjp`.

    Args:
        callback: function `(context, out, *args, **kwargs) -> None`. `out` is a pytree of writeable `Buffer`s with the
            structure of the result, and the arguments are pytrees of `Buffer`s.
        result_shape_dtypes: the type of the result: a pytree of objects with `shape` and `dtype`.
        has_side_effect: whether each call in a program calls the function once, as `io_callback`; otherwise it may be
            called any number of times, as `pure_callback`.
        vmap_method: how `vmap` calls the function, as in `pure_callback`. A callback with side effects is called for
            each element.
        input_output_aliases: the number of an argument's leaf -> the number of the result's leaf whose buffer holds the
            argument's value at first.
        command_buffer_compatible: ignored; JAX's hint for CUDA graphs.

    Raises:
        ValueError: an alias names a leaf that does not exist, or its types differ; or the callback returns a value.
    """
    types = [shaped_abstractify(x) for x in tree.tree_leaves(result_shape_dtypes)]
    out_tree = tree.tree_structure(result_shape_dtypes)
    aliases = sorted((int(i), int(o)) for i, o in (input_output_aliases or {}).items())

    @functools.cache  # equal calls have the same function, so that programs with them are equal
    def on_host(ranks: tuple[int, ...]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            leaves, in_tree = tree.tree_flatten((args, kwargs))
            arrays = [np.asarray(x) for x in leaves]
            # Under vmap, arguments and results may have batch axes in front.
            batch = np.broadcast_shapes(*[x.shape[: x.ndim - n] for x, n in zip(arrays, ranks, strict=True)])
            results = [np.zeros((*batch, *t.shape), t.dtype) for t in types]
            for i, o in aliases:
                results[o][...] = arrays[i]
            args, kwargs = tree.tree_unflatten(in_tree, [Buffer(x, writeable=False) for x in arrays])
            out = tree.tree_unflatten(out_tree, [Buffer(x, writeable=True) for x in results])
            returned = callback(ExecutionContext(), out, *args, **kwargs)
            if returned is not None:
                raise ValueError(f"buffer_callback: the callback writes its results and returns None, got {returned!r}")
            return tree.tree_unflatten(out_tree, results)

        return run

    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        avals = [shaped_abstractify(x) for x in tree.tree_leaves((args, kwargs))]
        for i, o in aliases:
            if not 0 <= i < len(avals) or not 0 <= o < len(types):
                raise ValueError(
                    f"buffer_callback: input_output_aliases has {i}: {o}, but there are {len(avals)} arguments and "
                    f"{len(types)} results"
                )
            if (avals[i].shape, avals[i].dtype) != (types[o].shape, types[o].dtype):
                raise ValueError(
                    f"buffer_callback: input_output_aliases has {i}: {o}, but the argument has the type "
                    f"{avals[i].str_short(short_dtypes=False)}, and the result {types[o].str_short(short_dtypes=False)}"
                )
        host = on_host(tuple(aval.ndim for aval in avals))
        if has_side_effect:
            return io_callback(host, result_shape_dtypes, *args, **kwargs)
        return pure_callback(host, result_shape_dtypes, *args, vmap_method=vmap_method, **kwargs)

    return call
