"""Means and variances of samples that arrive in batches, for example to normalise the input of a network.

The statistics are references, which two primitives read and write: `update_p` merges the statistics of a batch, and
`normalise_p` reads them. Each has one rule, which computes with the values of the references.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import corejax.numpy as jnp
from corejax import new_ref
from corejax.extend import dtypes, tree
from corejax.ref import Ref, RefPrimitive

__all__ = ["RunningStatistics", "running_statistics"]


def _check(name: str, count: Any, mean: Any, squares: Any, xs: Any, fits: bool) -> None:
    """Raise TypeError if samples are not of the statistics' shape and dtype."""
    same = mean.dtype == squares.dtype == xs.dtype and mean.shape == squares.shape
    if not (same and fits and count.dtype == "int32" and count.ndim == 0):
        raise TypeError(
            f"{name}: samples of shape {mean.shape} and dtype {mean.dtype} expected, got {xs.aval.str_short()}"
        )
    if not dtypes.is_float(mean.dtype) or mean.dtype.itemsize < 2:
        raise TypeError(f"{name}: floating-point numbers of 16 bits or more expected, got {mean.dtype}")


def _update(count: Any, mean: Any, squares: Any, xs: Any) -> tuple[Any, None]:
    """Merge the statistics of a batch (Chan, Golub and LeVeque, "Updating formulae ...", 1979)."""
    _check("running_statistics.update", count, mean, squares, xs, xs.ndim > 0 and xs.shape[1:] == mean.shape)
    size = xs.shape[0]
    if size == 0:
        return (count, mean, squares), None
    total = count + size
    batch_mean = xs.mean(axis=0)
    difference = batch_mean - mean
    share = size / total.astype(mean.dtype)
    deviations = ((xs - batch_mean) ** 2).sum(axis=0) + difference**2 * (share * count.astype(mean.dtype))
    return (total, mean + difference * share, squares + deviations), None


def _normalise(count: Any, mean: Any, squares: Any, x: Any, *, epsilon: float) -> tuple[tuple[()], Any]:
    """Shift and scale samples to mean 0 and variance 1."""
    fits = x.ndim >= mean.ndim and x.shape[x.ndim - mean.ndim :] == mean.shape
    _check("running_statistics.normalise", count, mean, squares, x, fits)
    variance = squares / jnp.maximum(count, 1).astype(mean.dtype)
    return (), (x - mean) / jnp.sqrt(variance + epsilon)


STATISTICS = ("count", "mean", "squares")
update_p = RefPrimitive("running_statistics.update", (*STATISTICS, "xs"), writes=STATISTICS, discharge=_update)
normalise_p = RefPrimitive("running_statistics.normalise", (*STATISTICS, "x"), reads=STATISTICS, discharge=_normalise)


@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class RunningStatistics:
    """Mean and variance of the samples seen so far; `running_statistics` makes it.

    Attributes:
        count: reference to the number of samples.
        mean: reference to their mean.
        squares: reference to the sum of their squared deviations from the mean.
    """

    count: Ref
    mean: Ref
    squares: Ref

    @property
    def variance(self) -> Any:
        """The variance of the samples; 0 if there are none."""
        count = jnp.maximum(self.count[...], 1)
        return self.squares[...] / count.astype(self.squares.dtype)

    def update(self, xs: Any) -> None:
        """Add a batch of samples. Their derivatives do not matter: the statistics count as constants.

        Args:
            xs: samples, one for each index of the first axis.

        Raises:
            TypeError: the samples have another shape or dtype than the mean.
        """
        update_p.bind(self.count, self.mean, self.squares, jnp.asarray(xs))

    def normalise(self, x: Any, epsilon: float = 1e-5) -> Any:
        """Return `(x - mean) / sqrt(variance + epsilon)` for a sample or a batch of samples."""
        return normalise_p.bind(self.count, self.mean, self.squares, jnp.asarray(x), epsilon=epsilon)


def running_statistics(shape: tuple[int, ...] = (), dtype: Any = "float32") -> RunningStatistics:
    """Return statistics of no samples.

    Args:
        shape: the shape of a sample.
        dtype: the dtype of the samples, a floating-point one.

    Raises:
        TypeError: the dtype is not a floating-point one.
    """
    if not dtypes.is_float(jnp.dtype(dtype)):
        raise TypeError(f"running_statistics: a floating-point dtype expected, got {jnp.dtype(dtype)}")
    # References of this kind can be written inside of a function that is differentiated.
    refs = [new_ref(jnp.zeros(shape, dtype), kind="no_grad_no_remat") for _ in range(2)]
    return RunningStatistics(new_ref(jnp.zeros((), "int32"), kind="no_grad_no_remat"), *refs)
