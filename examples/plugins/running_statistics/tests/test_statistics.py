"""Running statistics against NumPy's mean and variance of all samples."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.running_statistics import RunningStatistics, running_statistics

SAMPLES = (5 + 2 * np.random.default_rng(0).normal(size=(40, 3))).astype(np.float32)


def assert_statistics(statistics: RunningStatistics, samples: np.ndarray) -> None:
    assert int(statistics.count[...]) == len(samples)
    np.testing.assert_allclose(statistics.mean[...], samples.mean(0), rtol=1e-5)
    np.testing.assert_allclose(statistics.variance, samples.var(0), rtol=1e-4)


@pytest.mark.parametrize("compile", [False, True])
def test_batches_of_several_sizes(compile: bool) -> None:
    statistics = running_statistics((3,))
    update = corejax.jit(statistics.update) if compile else statistics.update
    for first, last in ((0, 1), (1, 9), (9, 9), (9, 40)):
        update(SAMPLES[first:last])
    assert_statistics(statistics, SAMPLES)


def test_a_scan_over_batches() -> None:
    statistics = running_statistics((3,))

    @corejax.jit
    def fill(statistics: RunningStatistics, batches: corejax.Array) -> corejax.Array:
        def body(_: None, xs: corejax.Array) -> tuple[None, corejax.Array]:
            statistics.update(xs)
            return None, statistics.count[...]

        return lax.scan(body, None, batches)[1]

    np.testing.assert_array_equal(fill(statistics, SAMPLES.reshape(8, 5, 3)), np.arange(5, 41, 5))
    assert_statistics(statistics, SAMPLES)


def test_a_mapped_function_updates_statistics_for_each_element() -> None:
    zeros = jnp.zeros((2, 3))
    many = RunningStatistics(corejax.new_ref(jnp.zeros(2, "int32")), corejax.new_ref(zeros), corejax.new_ref(zeros))
    corejax.vmap(RunningStatistics.update)(many, SAMPLES.reshape(2, 20, 3))
    np.testing.assert_allclose(many.mean[...], SAMPLES.reshape(2, 20, 3).mean(1), rtol=1e-5)


def test_normalised_samples_and_their_derivatives() -> None:
    statistics = running_statistics((3,))
    statistics.update(SAMPLES)
    normalised = statistics.normalise(SAMPLES, epsilon=0.0)
    np.testing.assert_allclose(normalised.mean(0), np.zeros(3), atol=1e-5)
    np.testing.assert_allclose(normalised.var(0), np.ones(3), rtol=1e-4)

    def loss(x: corejax.Array) -> corejax.Array:
        statistics.update(x[None])  # the derivative ignores that the statistics depend on x
        return statistics.normalise(x, epsilon=0.0).sum()

    gradient = corejax.jit(corejax.grad(loss))(SAMPLES[0])
    assert int(statistics.count[...]) == 41
    np.testing.assert_allclose(gradient, 1 / np.sqrt(statistics.variance), rtol=1e-5)


def test_errors() -> None:
    statistics = running_statistics((3,))
    with pytest.raises(TypeError, match=r"update: samples of shape \(3,\) and dtype float32 expected, got f32\[3\]"):
        statistics.update(SAMPLES[0])
    with pytest.raises(TypeError, match="floating-point"):
        running_statistics((3,), "int32")
    assert int(statistics.count[...]) == 0
