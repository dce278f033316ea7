"""Operations that Python code partitions: custom calls of `TARGET`, which XLA's partitioner delegates to Python.

XLA passes the tiles that sharding propagation has chosen for operands and results. Python returns the program that
runs on each device's parts and the tiles that the program expects, to which XLA then reshards the operands.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._probe import xla_client
from ._spread import hlo_of_tiles, tiles_of_hlo

TARGET = "corejax.partitioned"

Tiles = np.ndarray[Any, Any]
Answer = tuple[str, Sequence[Tiles], Sequence[Tiles]]

_lock = threading.Lock()
_numbers = itertools.count(1)
_known: weakref.WeakValueDictionary[bytes, CustomPartitioner] = weakref.WeakValueDictionary()
_registered = False


class CustomPartitioner:
    """The partitioning of one custom call; keep it alive as long as a program with the call may be compiled.

    Args:
        ranks: numbers of dimensions of the operands and of the results.
        count: number of devices.
        partition: `(operand tiles, result tiles) -> (module text, operand tiles, result tiles)`.

    Attributes:
        key: the `backend_config` of the custom call.
        failure: the exception that `partition` raised, of which XLA reports only the text.
    """

    def __init__(
        self, ranks: tuple[Sequence[int], Sequence[int]], count: int, partition: Callable[..., Answer]
    ) -> None:
        _register()
        self.key = str(next(_numbers))
        self.failure: BaseException | None = None
        self._ranks = ranks
        self._count = count
        self._partition = partition
        _known[self.key.encode()] = self

    def answer(self, operands: Sequence[Any], results: Sequence[Any]) -> tuple[bytes, list[Any], list[Any]]:
        """Call `partition` with XLA's shardings converted to tiles, and convert its answer back."""
        tiles = [
            [tiles_of_hlo(hlo, ndim, self._count) for hlo, ndim in zip(side, ranks, strict=True)]
            for side, ranks in zip((operands, results), self._ranks, strict=True)
        ]
        try:
            text, *made = self._partition(*tiles)
        except BaseException as error:
            self.failure = error
            raise
        placed = [[hlo_of_tiles(each) for each in side] for side in made]
        return text.encode(), placed[0], placed[1]


def _partition(arg_shapes: Any, arg_shardings: Any, result_shape: Any, result_sharding: Any, key: bytes) -> Any:
    several = result_shape.is_tuple()
    results = result_sharding.tuple_elements() if several else [result_sharding]
    text, operands, results = _known[key].answer(arg_shardings, results)
    if not several:
        return text, operands, results[0]
    return text, operands, xla_client.HloSharding.tuple_sharding(result_shape, results)


def _keep_sharding(sharding: Any, shape: Any, key: bytes) -> Any:
    return sharding


def _infer_replicated(arg_shapes: Any, arg_shardings: Any, result_shape: Any, key: bytes) -> Any:
    """Return replicated shardings for the results, which hold until Shardy's rule replaces them."""
    replicated = xla_client.HloSharding.replicate()
    if not result_shape.is_tuple():
        return replicated
    return xla_client.HloSharding.tuple_sharding(result_shape, [replicated] * len(result_shape.tuple_shapes()))


def _register() -> None:
    global _registered
    with _lock:
        if not _registered:
            xla_client.register_custom_call_partitioner(
                TARGET, _keep_sharding, _partition, _infer_replicated, can_side_effecting_have_replicated_sharding=True
            )
            _registered = True
