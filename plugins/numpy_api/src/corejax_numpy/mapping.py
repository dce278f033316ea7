"""Apply functions of elements, rows or axes to whole arrays, by `vmap`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from corejax import vmap
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    function_argument,
)
from corejax_numpy.creation import asarray
from corejax_numpy.manipulation import expand_dims, squeeze
from corejax_numpy.ranges import arange

Function = Callable[..., Any]
CoreDims = tuple[str, ...]

_DIMENSIONS = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"{_DIMENSIONS}(?:,{_DIMENSIONS})*->{_DIMENSIONS}(?:,{_DIMENSIONS})*")

# -- vectorize ---------------------------------------------------------------------------------------------------


def vectorize(pyfunc: Function, *, excluded: Collection[int | str] = frozenset(), signature: str | None = None) -> Any:
    """Turn a function of scalars (or small arrays) into one that broadcasts over all leading axes.

    Args:
        pyfunc: the function; a function of scalars unless there is a signature.
        excluded: positions and names of arguments that are passed on unchanged.
        signature: the core axes of arguments and results, such as `"(n,m),(m)->(n)"`; equal names mean equal sizes.

    Returns:
        A function that applies `pyfunc` for each index of the leading axes, which broadcast together.

    Raises:
        TypeError: `excluded` contains something other than positions and names.
        ValueError: a position is negative, or the signature cannot be parsed.
    """
    if any(not isinstance(e, str | int) for e in excluded):
        raise TypeError(f"vectorize: excluded holds positions and names of arguments, got {excluded!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"vectorize: positions of excluded arguments count from 0, got {excluded!r}")
    dims = None if signature is None else _parse_signature(signature)

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        unmapped = {i for i, x in enumerate(args) if i in excluded or x is None}
        names = [name for name in kwargs if name not in excluded]
        fixed = {name: x for name, x in kwargs.items() if name in excluded}
        mapped = [x for i, x in enumerate(args) if i not in unmapped] + [kwargs[name] for name in names]
        mapped_dims = None if dims is None else _dims_of_mapped(dims[0], unmapped, excluded, names, signature)

        def call(*xs: Any) -> Any:
            values = iter(xs)
            positional = [x if i in unmapped else next(values) for i, x in enumerate(args)]
            return pyfunc(*positional, **dict(zip(names, values, strict=True)), **fixed)

        arrays = [asarray(x) for x in mapped]
        if dims is None or mapped_dims is None:
            return _broadcast(call, arrays, [()] * len(arrays))
        where = f"vectorized function of signature {signature!r}"
        sizes = _input_sizes(arrays, mapped_dims, where)
        return _broadcast(_with_outputs_checked(call, sizes, dims[1], where), arrays, mapped_dims)

    return vectorized


def _parse_signature(signature: str) -> tuple[list[CoreDims], list[CoreDims]]:
    text = signature.replace(" ", "") if isinstance(signature, str) else ""
    if not _SIGNATURE.fullmatch(text):
        raise ValueError(f"vectorize: a signature has the form '(n,m),(m)->(n)', got {signature!r}")
    sides = [[tuple(re.findall(r"\w+", one)) for one in re.findall(_DIMENSIONS, side)] for side in text.split("->")]
    return sides[0], sides[1]


def _dims_of_mapped(
    dims: list[CoreDims], unmapped: set[int], excluded: Collection[int | str], names: list[str], signature: str | None
) -> list[CoreDims]:
    """Return the core axes of the mapped arguments; the signature counts a None, but no excluded argument."""
    if names:
        raise TypeError(f"vectorize: with a signature, arguments are positional; got {', '.join(names)} by name")
    nones = {i - len([e for e in excluded if isinstance(e, int) and e < i]) for i in unmapped if i not in excluded}
    if any(i < len(dims) and dims[i] for i in nones):
        raise ValueError(f"vectorize: None stands where signature {signature!r} has axes")
    return [d for i, d in enumerate(dims) if i not in nones]


def _agree(sizes: dict[str, int], shape: Sequence[int], dims: CoreDims, where: str) -> None:
    for name, size in zip(dims, shape, strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {size} and {sizes[name]}, in {where}")


def _input_sizes(arrays: Sequence[Any], dims: Sequence[CoreDims], where: str) -> dict[str, int]:
    if len(arrays) != len(dims):
        raise TypeError(f"wrong number of positional arguments: expected {len(dims)}, got {len(arrays)}, in {where}")
    sizes: dict[str, int] = {}
    for x, names in zip(arrays, dims, strict=True):
        if x.ndim < len(names):
            raise ValueError(f"input with shape {x.shape} does not have enough dimensions for {names}, in {where}")
        _agree(sizes, x.shape[x.ndim - len(names) :], names, where)
    return sizes


def _with_outputs_checked(call: Function, sizes: dict[str, int], dims: list[CoreDims], where: str) -> Function:
    def checked(*args: Any) -> Any:
        out = call(*args)
        outs = out if isinstance(out, tuple) else (out,)
        if len(outs) != len(dims):
            raise TypeError(f"wrong number of output arguments: expected {len(dims)}, got {len(outs)}, in {where}")
        for x, names in zip(outs, dims, strict=True):
            shape = asarray(x).shape
            if len(shape) != len(names):
                raise ValueError(f"output shape {shape} does not match core dimensions {names}, in {where}")
            _agree(dict(sizes), shape, names, where)
        return out

    return checked


def _broadcast(call: Function, arrays: Sequence[Any], dims: Sequence[CoreDims]) -> Any:
    """Map `call` over the leading axes; axes of size 1 are not mapped but added to the results."""
    shapes = [x.shape[: x.ndim - len(names)] for x, names in zip(arrays, dims, strict=True)]
    lax.check_rank_promotion("vectorize", shapes)
    rank = len(lax.broadcast_shapes(*shapes)) if shapes else 0
    filled = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    squeezed = [
        squeeze(x, tuple(i for i, size in enumerate(shape) if size == 1))
        for x, shape in zip(arrays, shapes, strict=True)
    ]
    added = []
    for axis in reversed(range(rank)):
        in_axes = tuple(None if shape[axis] == 1 else 0 for shape in filled)
        if all(a is None for a in in_axes):
            added.append(axis)
        else:
            call = vmap(call, in_axes)
    out = call(*squeezed)
    if not added:
        return out
    expanded = tuple(expand_dims(asarray(x), added) for x in (out if isinstance(out, tuple) else (out,)))
    return expanded if isinstance(out, tuple) else expanded[0]


# -- over axes ---------------------------------------------------------------------------------------------------


def apply_along_axis(func1d: Function, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a function of vectors along an axis; the axes of the result take the place of this axis.

    Args:
        func1d: the function of a vector; its result may have any shape.
        axis: the axis of the vectors.
        arr: an array.
        args: further positional arguments of the function.
        kwargs: further keyword arguments of the function.

    Raises:
        ValueError: the axis does not exist.
    """
    function_argument("apply_along_axis", func1d, "func1d")
    arr = array_argument("apply_along_axis", arr, 2)
    axis = canonical_axis(axis, arr.ndim)

    def function(row: Any) -> Any:
        return func1d(row, *args, **kwargs)

    for i in range(1, arr.ndim - axis):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(axis):
        function = vmap(function)
    return function(arr)


def apply_over_axes(func: Function, a: Any, axes: Any) -> Any:
    """Apply a reduction `func(a, axis)` over several axes, one after another; the axes stay, with size 1.

    Args:
        func: the reduction; its result may have the reduced axis with size 1, or not at all.
        a: the array.
        axes: the axis or axes.

    Raises:
        ValueError: a result has neither the rank of its argument nor one less.
    """
    function_argument("apply_over_axes", func, "func")
    a = array_argument("apply_over_axes", a, 1)
    for axis in canonical_axes(axes, a.ndim, "axes", "apply_over_axes"):
        out = array_argument("apply_over_axes", func(a, axis), "the result of func")
        if out.ndim == a.ndim - 1:
            out = expand_dims(out, axis)
        elif out.ndim != a.ndim:
            raise ValueError(f"apply_over_axes: the function returns {out.aval.str_short()} for {a.aval.str_short()}")
        a = out
    return a


def fromfunction(function: Function, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """Create an array by a function of the indices of its elements.

    Args:
        function: a function of as many scalars as there are axes.
        shape: the shape of the array; if the results of the function are arrays, their axes come last.
        dtype: dtype of the indices; by default the default floating dtype.
        kwargs: further keyword arguments of the function.
    """
    shape = canonical_shape(shape)
    function_argument("fromfunction", function, "function")

    def called(*indices: Any) -> Any:
        return function(*indices, **kwargs)

    for i in reversed(range(len(shape))):
        called = vmap(called, tuple(0 if i == j else None for j in range(len(shape))))
    return called(*(arange(size, dtype=dtype) for size in shape))
