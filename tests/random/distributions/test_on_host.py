"""Few numbers are drawn by NumPy on the host: bit for bit what the operations give one by one."""

import numpy as np
import pytest

import corejax
import corejax.random as random
from corejax.extend.messages import observe
from corejax_random.distributions import on_host, random_gamma
from corejax_random.keys.primitives import random_split_p
from tests.random.oracle import ALL, NEED_LINALG, SEED, drawn


@pytest.fixture
def by_operations(monkeypatch):
    """A call that has the operations draw."""

    def run(function, *args):
        with monkeypatch.context() as patch:
            patch.setattr(on_host, "on_host", lambda *_: False)
            patch.setattr(random_gamma, "COMPILED", 0)
            return function(*args)

    return run


def assert_bits(got, wanted):
    """NaN and the signs of zeros count too."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert (got.dtype, got.shape, got.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())


@pytest.mark.parametrize(("name", "number"), [(name, i) for name, i in ALL if name not in NEED_LINALG])
def test_what_the_operations_give(name, number, by_operations):
    key = random.key(SEED)
    assert_bits(drawn(random, name, number, key), by_operations(drawn, random, name, number, key))


@pytest.mark.parametrize("name", ["uniform", "normal", "randint", "permutation", "gamma"])
@pytest.mark.parametrize("setting", [{"default_prng_impl": "rbg"}, {"threefry_partitionable": False}])
def test_with_other_generators(name, setting, by_operations):
    with corejax.config.override(**setting):
        key = random.key(SEED)
        assert_bits(drawn(random, name, 0, key), by_operations(drawn, random, name, 0, key))


BOUNDS = [
    (0, 1), (3, 3), (5, -5), (-(2**31), 2**31), (-(2**31), 2**31 - 1), (0, 2**40), (-(2**70), 2**70), (0, 2**32),
    (-(2**63), 2**63), (-(2**63), 2**63 - 1), (0, 2**64), (2**63, 2**64 - 1), (-1000, 1000), (250, 300),
    (0, 3 * 2**30), (-(2**31), 2**30), (0, 3 * 2**62), (0, 70000),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_any_bounds(dtype, by_operations):
    key = random.key(3)
    for low, high in BOUNDS:
        assert_bits(
            random.randint(key, (9,), low, high, dtype), by_operations(random.randint, key, (9,), low, high, dtype)
        )


@pytest.mark.parametrize("size", [0, 1, 2, 399, 401, 511])
def test_sizes_where_the_way_changes(size, by_operations):
    key = random.key(5)
    for draw in (random.normal, random.uniform, random.bits):
        assert_bits(draw(key, (size,)), by_operations(draw, key, (size,)))
    assert_bits(random.permutation(key, size), by_operations(random.permutation, key, size))


def test_gamma_numbers_of_special_parameters(by_operations):
    a = np.float32([np.nan, np.inf, 0, 1e-30, 1e30, 0.3])
    for draw in (random.gamma, random.loggamma):
        assert_bits(draw(random.key(2), a), by_operations(draw, random.key(2), a))


def test_who_watches_sees_the_operations():
    seen = []
    with observe.watching(lambda step, begins: seen.append(step.primitive.name)):
        random.normal(random.key(0), (3,))
    assert {"random_bits", "erf_inv"} <= set(seen)


def test_warnings_are_silent_whatever_numpy_is_set_to():
    with np.errstate(all="raise"):
        key = random.key(2**40 + 1)
        random.split(random.fold_in(key, 2**32 - 1), 3)
        for dtype in ("float16", "float32", "float64", "bfloat16"):
            random.normal(key, (50,), dtype)
            random.uniform(key, (50,), dtype, -1e-30, 1.0)
        random.randint(key, (50,), -(2**31), 2**31 - 1)
        random.gamma(key, np.float32([1e-30, 0, 1e30]))


@pytest.mark.parametrize("setting", [{}, {"threefry_partitionable": False}, {"default_prng_impl": "rbg"}])
def test_keys_of_keys(setting):
    """`split` leaves the primitive out where nobody sees it."""
    with corejax.config.override(**setting):
        for num in (0, 1, 2, 401, (2, 3), ()):
            key = random.key(SEED)
            got = random.split(key, num)
            seen = []
            with observe.watching(lambda step, begins, seen=seen: seen.append(step.primitive.name)):
                wanted = random.split(key, num)
            assert got.aval is wanted.aval and "random_split" in seen
            assert_bits(random.key_data(got), random.key_data(wanted))
        raw = random.split(random.PRNGKey(SEED))
        assert_bits(raw, random.key_data(random.split(random.key(SEED))))


def test_many_keys_of_keys_that_are_asked_for_often():
    """A program splits them then."""
    many = random.split(random.key(SEED), 30)
    for key in many:
        got = random.split(key, (2, 300))
        assert got.shape == (2, 300)
        assert_bits(random.key_data(got), random.key_data(random_split_p.bind(key, shape=(2, 300))))
    assert_bits(random.split(random.key_data(key), 600), random.key_data(got).reshape(600, 2))
    with corejax.config.override(disable_jit=True):
        assert_bits(random.key_data(random.split(key, (2, 300))), random.key_data(got))
