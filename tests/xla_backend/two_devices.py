"""What `test_alone` runs in a process of its own, whose CPU passes for two devices."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax import ShapeDtypeStruct, grad, jit, lax
from corejax.sharding import SingleDeviceSharding

corejax.config.update("num_cpu_devices", 2)
FIRST, SECOND = corejax.devices()
X = np.float32([1, 2, 3])
F = jit(lambda x: x * 2)


def test_programs_run_where_their_arguments_are_bound() -> None:
    x = corejax.device_put(X, SECOND)
    for _ in range(2):
        assert F(x).devices() == {SECOND} and F(x).committed
        assert F(F(x)).devices() == {SECOND}
        assert F(X).devices() == {FIRST} and not F(X).committed
        np.testing.assert_array_equal(F(x), 2 * X)
    added = jit(lambda x, y: x + y)
    assert added(x, F(X)).devices() == {SECOND}, "what is bound to no device goes where the others are"
    assert grad(jit(lambda x: lax.reduce_sum(lax.sin(x), (0,))))(x).devices() == {SECOND}
    with pytest.raises(ValueError, match=r"bound to different devices: float32\[3\] on .*1, float32\[3\] on .*0"):
        added(x, corejax.device_put(F(X), FIRST))


def test_device_put() -> None:
    y = F(X)
    bound = corejax.device_put(y, FIRST)
    assert bound.committed and not y.committed and corejax.device_put(bound, FIRST) is bound
    tree = corejax.device_put({"a": X, "b": (X, 1.0)}, {"a": FIRST, "b": SingleDeviceSharding(SECOND)})
    assert [tree["a"].devices(), tree["b"][1].devices()] == [{FIRST}, {SECOND}]
    assert corejax.device_put(tree["a"], SECOND, donate=True).devices() == {SECOND} and tree["a"].is_deleted()
    with pytest.raises(
        TypeError, match=r"device_put: device: expected one of corejax.devices\(\), or a sharding .*got 'gpu'"
    ):
        corejax.device_put(X, "gpu")


def test_options_and_types_name_devices() -> None:
    there = SingleDeviceSharding(SECOND)
    for options in ({"device": SECOND}, {"in_shardings": there}, {"out_shardings": there}):
        f = jit(lambda x: x + 1, **options)
        for x in (X, F(X), corejax.device_put(X, FIRST)):
            assert f(x).devices() == {SECOND} and f(x).committed
    lowered = F.lower(ShapeDtypeStruct((3,), np.float32, sharding=there))
    assert lowered.compile()(X).devices() == {SECOND}
    with pytest.raises(ValueError, match="the program runs on one device"):
        jit(lambda x: x, in_shardings=there, out_shardings=FIRST)


def test_default_device() -> None:
    with corejax.default_device(SECOND):
        assert F(X).devices() == F(2.0).devices() == {SECOND} and not F(X).committed
        assert lax.sin(X).device == SECOND
    assert F(X).devices() == {FIRST}
    with pytest.raises(TypeError, match=r"a device is one of corejax.devices\(\), got 3"):
        corejax.default_device(3).__enter__()


def test_counts() -> None:
    assert corejax.device_count() == corejax.local_device_count() == len(corejax.local_devices()) == 2
    assert (corejax.process_index(), corejax.process_count(), corejax.process_indices()) == (0, 1, [0])
    with pytest.raises(corejax.errors.BackendError, match="cannot set 3 CPU devices"):
        corejax.config.update("num_cpu_devices", 3)
