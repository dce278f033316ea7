"""The base class of sparse arrays, and helpers for functions of their parts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import Tracer, tree


class SparseEfficiencyError(ValueError):
    """A conversion that would store many more elements than the array has."""


class SparseEfficiencyWarning(UserWarning):
    """A conversion that stores many more elements than the array has."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A name of JAX's: corejax calls no sparse kernels of CUDA."""


class JAXSparse:
    """The base class of sparse arrays, for `isinstance`.

    Attributes:
        data: the stored elements.
    """

    __hash__ = None  # type: ignore[assignment]  # equality is undefined, as for arrays
    __array_priority__ = 1000  # NumPy's operators leave operands of this class to it
    data: Any
    n_batch: Any = 0
    n_dense: Any = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        raise NotImplementedError

    @property
    def nse(self) -> int:
        """The number of stored elements of each batch."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        dtype: np.dtype[Any] = self.data.dtype
        return dtype

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a sparse array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        try:
            counts = {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}
            shown = "".join(f", {name}={n}" for name, n in counts.items() if n or name == "nse")
            text = f"{type(self).__name__}({self.dtype.name}{list(self.shape)}{shown})"
        except (AttributeError, TypeError, ValueError, IndexError):
            return f"{type(self).__name__}(<parts of a pytree>)"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"{self!r} is not converted to a dense array implicitly; call its method todense()")

    def todense(self) -> Any:
        """Return the dense array."""
        raise NotImplementedError

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Permute the dimensions; by default reverse them."""
        raise NotImplementedError

    @property
    def T(self) -> Any:
        """The array with its dimensions reversed."""
        return self.transpose()

    def block_until_ready(self) -> Any:
        """Wait until the elements are computed, and return the array."""
        corejax.block_until_ready(tree.tree_leaves(self))
        return self


def over_batch(f: Callable[..., Any], n_batch: int, *arrays: Any) -> Any:
    """Map a function over leading dimensions of arrays; an array with size 1 along one is the same for all elements."""
    if not n_batch:
        return f(*arrays)
    sizes = {x.shape[0] for x in arrays}
    size = next(iter(sizes - {1}), 1)
    axes = tuple(0 if x.shape[0] == size else None for x in arrays)
    elements = [x if axis == 0 else x[0] for x, axis in zip(arrays, axes, strict=True)]
    return corejax.vmap(lambda *xs: over_batch(f, n_batch - 1, *xs), in_axes=axes)(*elements)


def sequence_of(values: Any, name: str) -> tuple[int, ...]:
    """Return integers as a tuple; one integer is a tuple of one."""
    try:
        return (operator.index(values),) if not isinstance(values, tuple | list) else tuple(map(operator.index, values))
    except TypeError:
        raise TypeError(f"{name} must be integers, got {values!r}") from None


def canonical(axes: Any, ndim: int, name: str) -> tuple[int, ...]:
    """Return axes as a tuple of different numbers from 0 on; None is all axes."""
    found = tuple(range(ndim)) if axes is None else sequence_of(axes, f"{name}: axes")
    if any(not -ndim <= axis < ndim for axis in found):
        raise ValueError(f"{name}: axes {found} are out of bounds for an array with {ndim} dimensions")
    found = tuple(axis % ndim for axis in found)
    if len(set(found)) < len(found):
        raise ValueError(f"{name}: axes {found} contain an axis twice")
    return found


def concrete_size(value: Any, what: str) -> int:
    """Return a number of stored elements as an int.

    Raises:
        TypeError: it is traced, or no integer.
    """
    if isinstance(value, Tracer):
        raise TypeError(
            f"{what}: the number of stored elements depends on traced values; pass nse=, the largest number that there "
            "can be"
        )
    size = operator.index(value)
    if size < 0:
        raise ValueError(f"{what}: nse must not be negative, got {size}")
    return size
