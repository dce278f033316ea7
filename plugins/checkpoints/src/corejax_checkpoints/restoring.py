"""Restoring: for each device, read the boxes of arrays that it will hold and assemble them from the saved parts."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

import corejax
from corejax.extend import Array, ShapedArray, dtypes
from corejax.extend.plugins import exported
from corejax.extend.types import ShapeDtypeStruct, device_buffer
from corejax_checkpoints.files import Files, Host
from corejax_checkpoints.index import ARRAY_KINDS, CheckpointError, Leaf, held_dtype

Box = tuple[tuple[int, int], ...]  # start and stop in each dimension

T = TypeVar("T")
R = TypeVar("R")


class Wanted(NamedTuple):
    """A leaf to restore.

    Attributes:
        leaf: the leaf of the checkpoint.
        kind: kind of the result; see `Leaf.kind`.
        dtype: dtype of the array.
        sharding: sharding of the array; None for the host.
        boxes: the boxes of the numbers that this process needs.
    """

    leaf: Leaf
    kind: str
    dtype: Any = None
    sharding: Any = None
    boxes: tuple[Box, ...] = ()


def wanted(leaf: Leaf, like: Any, sharding: Any, place: Path) -> Wanted:
    """Determine how to restore a leaf.

    Args:
        leaf: the leaf of the checkpoint.
        like: the user's value in its place; `leaf` itself if there is no `like` tree.
        sharding: sharding or device for the result; None for that of `like`.
        place: directory of the checkpoint, for messages.

    Raises:
        TypeError: `like` is of another kind, or `sharding` is neither a sharding nor a device.
        ValueError: `like` has another shape or dtype, or the sharding does not divide the array.
    """
    kind = leaf.kind if like is leaf else _kind_like(like)
    if (kind in ARRAY_KINDS) != (leaf.kind in ARRAY_KINDS) or (kind not in ARRAY_KINDS and kind != leaf.kind):
        raise TypeError(
            f"restore: {leaf.name} of {place} is {_article(leaf.type_text)}, but like has {_shown(like)} there; "
            f"it must be {'an array' if leaf.kind in ARRAY_KINDS else _article(leaf.kind)}"
        )
    if kind not in ARRAY_KINDS:
        return Wanted(leaf, kind)
    dtype = _dtype_of(leaf, like, place)
    if like is not leaf:
        _check_type(leaf, dtype, like, place)
        sharding = _sharding_of(like) if sharding is None else sharding
    full = tuple((0, n) for n in leaf.shape + leaf.inner)
    if sharding is None:
        return Wanted(leaf, kind, dtype, None, (full,))
    sharding = _as_sharding(sharding, leaf)
    try:
        boxes = [
            (*(index.indices(n)[:2] for index, n in zip(each, leaf.shape, strict=True)), *full[len(leaf.shape) :])
            for each in sharding.addressable_devices_indices_map(leaf.shape).values()
        ]
    except ValueError as error:
        raise ValueError(f"restore: {leaf.name} {leaf.type_text}: {error}") from None
    if not boxes and len(sharding.device_tuple) == 1:
        raise ValueError(
            f"restore: {leaf.name} {leaf.type_text} cannot be put on {sharding.device_tuple[0]}, which belongs to "
            "another process; the devices of this process are corejax.local_devices()"
        )
    return Wanted(leaf, "array", dtype, sharding, tuple(dict.fromkeys(boxes)))


def _kind_like(like: Any) -> str:
    if isinstance(like, np.ndarray):
        return "numpy"
    if isinstance(like, np.generic):
        return "scalar"
    return "array" if hasattr(like, "shape") and hasattr(like, "dtype") else type(like).__name__


def _article(text: str) -> str:
    return f"an {text}" if text[0] in "aeiou" else f"a {text}"


def _shown(like: Any) -> str:
    kind = _kind_like(like)
    return f"{_text_of(like)}" if kind in ARRAY_KINDS else f"{like!r} of type {kind}"


def _text_of(like: Any) -> str:
    shape = ",".join(map(str, like.shape))
    return f"{dtypes.short_name(like.dtype) if like.dtype.names else like.dtype}[{shape}]"


def _check_type(leaf: Leaf, dtype: np.dtype[Any], like: Any, place: Path) -> None:
    if tuple(like.shape) != leaf.shape:
        raise ValueError(f"restore: {leaf.name} of {place} is {leaf.type_text}, but like has {_text_of(like)} there")
    if like.dtype != dtype:
        raise ValueError(
            f"restore: {leaf.name} of {place} is {leaf.type_text}, but like has {_text_of(like)} there. Use "
            f"{leaf.dtype} in like, and convert the restored array: x.astype({str(like.dtype)!r})"
        )


def _dtype_of(leaf: Leaf, like: Any, place: Path) -> Any:
    if not leaf.impl:
        return np.dtype(leaf.dtype)
    try:
        return corejax.random.key_dtype(leaf.impl)
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{place}: {leaf.name} has keys of the generator {leaf.impl!r}, which is not registered: {error}"
        ) from None


def _sharding_of(like: Any) -> Any:
    if isinstance(like, ShapeDtypeStruct):
        return like.sharding
    return like.sharding if type(like) is Array and device_buffer(like) is not None and like.committed else None


def _as_sharding(place: Any, leaf: Leaf) -> Any:
    if isinstance(place, corejax.sharding.Sharding):
        return place
    what = f"restore: shardings, of {leaf.name}"
    if type(place).__name__ == "PartitionSpec" and (in_context := exported("sharding.in_context")):
        return in_context(place, what)
    try:
        return corejax.sharding.SingleDeviceSharding(place)
    except TypeError:
        raise TypeError(
            f"{what}: expected a sharding (corejax.NamedSharding(mesh, spec)) or one of corejax.devices(), got "
            f"{place!r} of type {type(place).__name__}"
        ) from None


# -- numbers -----------------------------------------------------------------------------------------------------------


def restored(wants: Iterable[Wanted], files: Files, pool: Executor) -> list[Any]:
    """Return the values of leaves; a pool reads and checks some leaves ahead while others are put on devices."""
    return [_value(want, boxes) for want, boxes in _map_ahead(pool, lambda want: _read(want, files), wants)]


def _map_ahead(pool: Executor, function: Callable[[T], R], items: Iterable[T], count: int = 4) -> Iterator[tuple[T, R]]:
    """Yield items with the results of a function, which a pool computes for the next `count` items in advance."""
    waiting: deque[tuple[T, Future[R]]] = deque()
    try:
        for item in items:
            waiting.append((item, pool.submit(function, item)))
            if len(waiting) > count:
                first, future = waiting.popleft()
                yield first, future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()
    finally:
        for _, future in waiting:
            future.cancel()


def _read(want: Wanted, files: Files) -> dict[Box, Host]:
    dtype = held_dtype(want.leaf) if want.kind in ARRAY_KINDS else None
    return {box: _box(want.leaf, box, dtype, files) for box in want.boxes}


def _box(leaf: Leaf, box: Box, dtype: Any, files: Files) -> Host:
    """Copy the numbers of a box from the parts that overlap it into new memory."""
    out = _aligned([stop - start for start, stop in box], dtype)
    for part in leaf.parts:
        low = [max(a, start) for (a, _), start in zip(box, part.start, strict=True)]
        high = [min(b, start + n) for (_, b), start, n in zip(box, part.start, part.shape, strict=True)]
        if any(a >= b for a, b in zip(low, high, strict=True)):
            continue
        inside = tuple(slice(a - start, b - start) for a, b, start in zip(low, high, part.start, strict=True))
        target = tuple(slice(a - start, b - start) for a, b, (start, _) in zip(low, high, box, strict=True))
        out[target] = files.read(leaf, part, dtype, inside)
    return out


def _aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> Host:
    """Return an uninitialised array aligned to 64 bytes, which XLA's CPU devices can share."""
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + 64, np.uint8)
    skipped = -raw.ctypes.data % 64
    return raw[skipped : skipped + nbytes].view(dtype).reshape(shape)


def _value(want: Wanted, boxes: dict[Box, Host]) -> Any:
    leaf = want.leaf
    if want.kind not in ARRAY_KINDS:
        return leaf.value
    if want.sharding is not None:
        return _on_devices(want, boxes)
    (host,) = boxes.values()
    if want.kind != "array":
        return host if want.kind == "numpy" else host[()]
    if leaf.impl:
        return corejax.random.wrap_key_data(host, impl=leaf.impl)
    return Array(host, ShapedArray(leaf.shape, want.dtype, leaf.weak_type))


def _immutable(host: Host) -> Host:
    """Make an array read-only, so that a device may share its memory."""
    if host.base is not None:
        host.base.flags.writeable = False
    host.flags.writeable = False
    return host


def _on_devices(want: Wanted, boxes: dict[Box, Host]) -> Array:
    """Assemble an array from parts on devices; keys as an array of their words, which are never split."""
    leaf, sharding = want.leaf, want.sharding
    shape = leaf.shape + leaf.inner
    if leaf.inner and len(sharding.device_tuple) > 1:
        at = len(leaf.shape)
        sharding = sharding.like(np.expand_dims(sharding.tiles(at), tuple(range(at, at + len(leaf.inner)))))
    held = {box: Array(_immutable(host), ShapedArray(host.shape, host.dtype)) for box, host in boxes.items()}
    parts = [
        corejax.device_put(held[tuple(each.indices(n)[:2] for each, n in zip(index, shape, strict=True))], device)
        for device, index in sharding.addressable_devices_indices_map(shape).items()
    ]
    made: Array = corejax.make_array_from_single_device_arrays(shape, sharding, parts, dtype=held_dtype(leaf))
    if not leaf.impl and not leaf.weak_type:
        return made
    return Array(device_buffer(made), ShapedArray(leaf.shape, want.dtype, leaf.weak_type))
