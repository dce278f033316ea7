"""Estimate densities from samples: gaussian_kde. Source: `scipy.stats.gaussian_kde`."""

from __future__ import annotations

import math
from typing import Any

import corejax.numpy as jnp
import corejax.scipy.special as special
from corejax.extend import tree
from corejax_scipy._arguments import array, reals

_NAME = "gaussian_kde"


class gaussian_kde:
    """A kernel density estimate: a sum of normal densities around the points of a sample; a pytree.

    Args:
        dataset: points in columns, or numbers.
        bw_method: the width of the normal densities relative to that of the sample: "scott" (the default),
            "silverman", a number, or a function of this object, which has `neff` and `d`.
        weights: weights of the points, not negative.

    Attributes:
        neff: the effective number of points.
        dataset: the sample.
        weights: the weights, normalised to the sum 1.
        covariance: the covariance matrix of the normal densities.
        inv_cov: the inverse of the covariance matrix.

    Raises:
        TypeError: an argument is complex, or not an array.
        ValueError: the sample has fewer than two numbers, the weights do not match, or `bw_method` is invalid.
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        points, *given = reals(_NAME, dataset, *(() if weights is None else (weights,)))
        self.dataset = jnp.atleast_2d(points)
        if self.dataset.size < 2 or self.dataset.ndim != 2:
            raise ValueError(
                f"{_NAME}: dataset must have points in columns, two numbers or more, got {points.aval.str_short()}"
            )
        if given:
            if given[0].shape != (self.n,):
                raise ValueError(
                    f"{_NAME}: weights must be a vector of {self.n} numbers, one for each point, got "
                    f"{given[0].aval.str_short()}"
                )
            self.weights = given[0] / jnp.sum(given[0])
        else:
            self.weights = jnp.full(self.n, 1.0 / self.n, self.dataset.dtype)
        self.neff = 1.0 / jnp.sum(self.weights**2)
        factor = self._factor("scott" if bw_method is None else bw_method)
        of_sample = jnp.atleast_2d(jnp.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights))
        self.covariance = of_sample * factor**2
        self.inv_cov = jnp.linalg.inv(of_sample) / factor**2

    def _factor(self, method: Any) -> Any:
        if callable(method):
            return method(self)
        if method == "scott":
            return jnp.power(self.neff, -1.0 / (self.d + 4))
        if method == "silverman":
            return jnp.power(self.neff * (self.d + 2) / 4.0, -1.0 / (self.d + 4))
        if isinstance(method, str) or jnp.ndim(method):
            raise ValueError(f"{_NAME}: bw_method must be 'scott', 'silverman', a number or a function, got {method!r}")
        return method

    @property
    def d(self) -> int:
        """The number of coordinates of a point."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def _points(self, name: str, points: Any) -> Any:
        (found,) = reals(f"{_NAME}.{name}", points)
        found = jnp.atleast_2d(found)
        if found.shape[0] != self.d and found.shape == (1, self.d):
            found = found.reshape(self.d, 1)
        if found.ndim != 2 or found.shape[0] != self.d:
            raise ValueError(
                f"{_NAME}.{name}: points must have {self.d} coordinates, in columns, got {found.aval.str_short()}"
            )
        return found

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the density at points in columns."""
        points = self._points("logpdf", x)
        half = jnp.linalg.cholesky(self.inv_cov)
        white = jnp.matmul(half.T, points, precision="highest")
        known = jnp.matmul(half.T, self.dataset, precision="highest")
        squares = jnp.sum(jnp.square(white[:, :, None] - known[:, None, :]), axis=0)
        size = jnp.sum(jnp.log(jnp.diagonal(half))) - 0.5 * self.d * math.log(2 * math.pi)
        return special.logsumexp(jnp.log(self.weights) - 0.5 * squares, axis=-1) + size

    def evaluate(self, points: Any) -> Any:
        """Return the density at points in columns."""
        return jnp.exp(self.logpdf(self._points("evaluate", points)))

    __call__ = pdf = evaluate

    def _product(self, difference: Any, covariance: Any) -> Any:
        """Return the weighted sum of normal densities of differences (in columns) with a covariance matrix."""
        half = jnp.linalg.cholesky(jnp.linalg.inv(covariance))
        squares = jnp.sum(jnp.square(jnp.matmul(half.T, difference, precision="highest")), axis=0)
        size = jnp.prod(jnp.diagonal(half)) / (2 * math.pi) ** (0.5 * self.d)
        return size * jnp.sum(self.weights * jnp.exp(-0.5 * squares))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """Return the integral of the density times a normal density.

        Raises:
            ValueError: `mean` or `cov` has another dimension.
        """
        mean = jnp.atleast_1d(jnp.squeeze(array(f"{_NAME}.integrate_gaussian", mean)))
        cov = jnp.atleast_2d(array(f"{_NAME}.integrate_gaussian", cov, 1))
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(
                f"{_NAME}.integrate_gaussian: mean and cov must have dimension {self.d}, got {mean.aval.str_short()} "
                f"and {cov.aval.str_short()}"
            )
        return self._product(self.dataset - mean[:, None], self.covariance + cov)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Return the integral of a one-dimensional density from `low` to `high`.

        Raises:
            ValueError: points have several coordinates, or a limit is not a number.
        """
        if self.d != 1:
            raise ValueError(
                f"{_NAME}.integrate_box_1d requires a one-dimensional density, this one has {self.d} coordinates"
            )
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError(f"{_NAME}.integrate_box_1d: low and high must be numbers, got {low!r} and {high!r}")
        width = jnp.sqrt(self.covariance[0, 0])
        ends = [special.ndtr((end - self.dataset[0]) / width) for end in (low, high)]
        return jnp.sum(self.weights * (ends[1] - ends[0]))

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Raise NotImplementedError; `integrate_box_1d` is supported.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"{_NAME}.integrate_box: only one dimension is supported; use integrate_box_1d")

    def integrate_kde(self, other: gaussian_kde) -> Any:
        """Return the integral of the product of two densities.

        Raises:
            ValueError: the densities have different dimensions.
        """
        if other.d != self.d:
            raise ValueError(f"{_NAME}.integrate_kde: the dimensions must be equal, got {self.d} and {other.d}")
        covariance = self.covariance + other.covariance
        total: Any = 0.0
        small, large = (self, other) if self.n < other.n else (other, self)
        for i in range(small.n):
            total = total + small.weights[i] * large._product(large.dataset - small.dataset[:, i : i + 1], covariance)
        return total

    def resample(self, key: Any, shape: Any = ()) -> Any:
        """Draw points from the density, with coordinates along the first axis.

        Args:
            key: a key of `corejax.random`.
            shape: the shape of the sample, without the axis of coordinates.
        """
        from corejax import random

        chosen, noise = random.split(key)
        index = random.choice(chosen, self.n, shape=shape, p=self.weights)
        zero = jnp.zeros(self.d, self.covariance.dtype)
        drawn = random.multivariate_normal(noise, zero, self.covariance, shape=shape, dtype=self.dataset.dtype)
        return self.dataset[:, index] + jnp.moveaxis(drawn, -1, 0)

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Raise NotImplementedError, since densities are immutable.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"{_NAME}.set_bandwidth: densities are immutable; make a new one with bw_method")


_FIELDS = ("neff", "dataset", "weights", "covariance", "inv_cov")


def _unflatten(aux: Any, children: Any) -> gaussian_kde:
    found = object.__new__(gaussian_kde)
    for name, child in zip(_FIELDS, children, strict=True):
        setattr(found, name, child)
    return found


tree.register_pytree_node(gaussian_kde, lambda kde: (tuple(getattr(kde, n) for n in _FIELDS), None), _unflatten)
