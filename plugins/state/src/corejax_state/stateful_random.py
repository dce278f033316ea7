"""`corejax.experimental.random`: random numbers from a generator that changes its state."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax import random
from corejax.extend import bottom_trace, current_trace, tree
from corejax.extend.messages import api_boundary
from corejax_state.reference import GENERATOR, Ref

__all__ = ["StatefulPRNG", "stateful_rng"]

Size = int | Sequence[int] | None


def _shape(size: Size, *arrays: Any) -> tuple[int, ...]:
    """Return the shape of samples: `size`, or the broadcast shape of the parameters."""
    if size is None:
        return np.broadcast_shapes(*map(jnp.shape, arrays))
    return tuple(map(operator.index, size)) if isinstance(size, Sequence) else (operator.index(size),)


@tree.register_dataclass
@dataclasses.dataclass(frozen=True, slots=True)
class StatefulPRNG:
    """A generator of random numbers with a key and a reference to a counter; `stateful_rng` makes it.

    Each draw folds the counter into the key and increments the counter, so that draws differ. Compiled functions, loops
    and branches use a generator like any reference, also as an argument. A function that is compiled or mapped does not
    return it.
    """

    _base_key: Any
    _counter: Ref

    @api_boundary
    def key(self, shape: int | Sequence[int] = ()) -> Any:
        """Return a new key, or an array of keys.

        Args:
            shape: the shape of the array.

        Raises:
            ValueError: the generator is the result of `split`, and not mapped over; or `vmap` maps a function that
                draws from a generator outside of it.
        """
        if self._base_key.ndim:
            raise ValueError("a generator that `split` returns draws numbers inside vmap only")
        count = self._counter[...]
        self._counter[...] = count + 1
        key, shape = random.fold_in(self._base_key, count), _shape(shape)
        return random.split(key, shape) if shape else key

    @api_boundary
    def random(self, size: Size = None, dtype: Any = float) -> Any:
        """Draw uniformly from 0 (included) to 1 (excluded)."""
        return random.uniform(self.key(), _shape(size), dtype)

    @api_boundary
    def uniform(self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Draw uniformly from `low` (included) to `high` (excluded)."""
        return random.uniform(self.key(), _shape(size, low, high), dtype, minval=low, maxval=high)

    @api_boundary
    def normal(self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Draw from the normal distribution with mean `loc` and standard deviation `scale`."""
        samples = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * samples).astype(dtype)

    @api_boundary
    def integers(self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int) -> Any:
        """Draw integers from `low` (included) to `high` (excluded); from 0 to `low` if `high` is None."""
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    @api_boundary
    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Return independent generators as one object, which `vmap` maps over."""
        return StatefulPRNG(self.key(num), Ref(jnp.zeros(_shape(num), int), GENERATOR))

    @api_boundary
    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Return a list of independent generators."""
        return [StatefulPRNG(key, Ref(0, GENERATOR)) for key in self.key(n_children)]


@api_boundary
def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """Return a generator of random numbers that changes its state, as `numpy.random.default_rng`.

    Args:
        seed: an integer; by default one that differs in each run, except in traced functions.
        impl: the name of the algorithm, by default the setting's.

    Raises:
        TypeError: the seed is missing in a function that is traced.
    """
    if seed is None:
        if current_trace() is not bottom_trace():
            raise TypeError("stateful_rng: a function that is traced gives the seed, as an integer or an argument")
        seed = np.int64(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    return StatefulPRNG(random.key(seed, impl=impl), Ref(0, GENERATOR))
