"""Operations that Python partitions: calls of the target `TARGET`; XLA's partitioner asks what a device does for them.

XLA gives the tiles of operands and results that propagation has come to; Python answers with a program of one device's
parts, and with the tiles that this program is for, which XLA brings the operands into.
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
    """What partitions one call; it has to live as long as a program with it may be compiled.

    Args:
        ranks: how many dimensions each operand has, and each result.
        count: number of devices.
        partition: `(operands' tiles, results' tiles) -> (a module's text, operands' tiles, results' tiles)`.

    Attributes:
        key: what the call's `backend_config` says.
        failure: what `partition` raised; XLA tells its text only.
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
        """XLA's question, in its terms."""
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


def _as_it_is(sharding: Any, shape: Any, key: bytes) -> Any:
    return sharding


def _open(arg_shapes: Any, arg_shardings: Any, result_shape: Any, key: bytes) -> Any:
    """What results are before Shardy's rule says it: whole."""
    whole = xla_client.HloSharding.replicate()
    if not result_shape.is_tuple():
        return whole
    return xla_client.HloSharding.tuple_sharding(result_shape, [whole] * len(result_shape.tuple_shapes()))


def _register() -> None:
    global _registered
    with _lock:
        if not _registered:
            xla_client.register_custom_call_partitioner(
                TARGET, _as_it_is, _partition, _open, can_side_effecting_have_replicated_sharding=True
            )
            _registered = True
