"""Draws that come again with the same numbers, shapes and dtypes give what the function gives that is called anew."""

import gc
import itertools
import threading
import warnings
import weakref

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax.extend.messages import observe
from corejax_random.distributions import repeating
from tests.random.oracle import ALL, CASES, NEED_LINALG, SEED

TIMES = 7  # by then it is recorded, run and written out


def anew(name):
    """The function without what is kept of its calls."""
    return getattr(random, name).__wrapped__


def assert_bits(got, wanted):
    assert got.aval is wanted.aval
    assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()


def again(draw, *keys):
    for key in keys:
        out = draw(key)
    return out


@pytest.mark.parametrize(("name", "number"), [(name, i) for name, i in ALL if name not in NEED_LINALG])
def test_same_numbers(name, number):
    args, kwargs = CASES[name][number]
    args = [jnp.asarray(x) if isinstance(x, np.ndarray) and x.dtype.itemsize < 8 else x for x in args]
    keys = random.split(random.key(SEED), TIMES)
    for key in keys:
        assert_bits(getattr(random, name)(key, *args, **kwargs), anew(name)(key, *args, **kwargs))


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["normal", "gamma", "randint", "permutation", "exponential"])
@pytest.mark.parametrize("size", [1, 7, 600])
def test_raw_keys(name, size):
    args = {"gamma": (2.0, (size,)), "randint": ((size,), 0, 9), "permutation": (size,)}.get(name, ((size,),))
    for seed in range(TIMES):
        got = getattr(random, name)(random.PRNGKey(seed), *args)
        assert_bits(got, anew(name)(random.key(seed), *args))


def test_most_functions_keep_their_calls():
    corejax.clear_caches()
    random.uniform(random.key(0))
    kept = repeating._calls
    for name in ("uniform", "normal", "gamma", "randint", "beta", "poisson", "exponential"):
        before = len(kept)
        args = {"randint": ((33,), 0, 9), "gamma": (2.0, (33,)), "beta": (2.0, 3.0, (33,)), "poisson": (2.0, (33,))}
        getattr(random, name)(random.key(0), *args.get(name, ((33,),)))
        assert len(kept) == before + 1, name


def test_numbers_that_are_equal_and_different():
    key = random.key(0)
    for _ in range(TIMES):
        for low in (0.0, -0.0):
            assert_bits(random.uniform(key, (2,), None, low, 0.0), anew("uniform")(key, (2,), None, low, 0.0))
        assert random.randint(key, (2,), 0, 1).dtype == np.int32
        with pytest.raises(TypeError, match="bernoulli: p must be floating-point"):
            random.bernoulli(key, 1)
        assert random.bernoulli(key, 1.0).shape == ()


def test_values_of_arrays_are_looked_at_each_time():
    key, a = random.key(0), jnp.array([0.5, 2.0])
    again(lambda k: random.gamma(k, a), *[key] * TIMES)
    again(lambda k: random.generalized_normal(k, a, (2,)), *[key] * TIMES)
    with pytest.raises(ValueError, match="gamma: a must not be negative, got Array"):
        random.gamma(key, jnp.array([0.5, -2.0]))
    with pytest.raises(ValueError, match="generalized_normal: p must be positive"):
        random.generalized_normal(key, jnp.array([0.0, 2.0]), (2,))
    b = jnp.array([1.0, 3.0])
    assert_bits(random.beta(key, a, b), anew("beta")(key, a, b))
    for _ in range(TIMES):
        assert_bits(random.beta(key, b, a), anew("beta")(key, b, a))
        assert_bits(random.beta(key, a, a), anew("beta")(key, a, a))
        assert_bits(random.permutation(key, jnp.asarray(5)), anew("permutation")(key, 5))
        assert_bits(random.permutation(key, jnp.asarray(6)), anew("permutation")(key, 6))


@pytest.mark.parametrize("size", [5, 600])
def test_settings(size):
    key = random.key(3)
    wanted = {}
    settings = [{}, {"enable_x64": True}, {"threefry_partitionable": False}, {"disable_jit": True}]
    for _ in range(4):
        for i, setting in enumerate(settings):
            with corejax.config.override(**setting):
                got = random.exponential(key, (size,))
                assert got.dtype == (np.float64 if "enable_x64" in setting else np.float32)
                assert_bits(got, wanted.setdefault(i, got))
    assert not np.array_equal(wanted[0], wanted[2])


def test_calls_are_found_again_when_settings_come_back():
    key = random.key(0)
    random.normal(key, (3,))
    kept = repeating._calls
    with corejax.config.override(enable_x64=True):
        random.normal(key, (3,))
        assert repeating._calls is not kept
    random.normal(key, (3,))
    assert repeating._calls is kept


def test_warnings_of_raw_keys_come_each_time():
    key = random.PRNGKey(0)
    again(random.normal, *[key] * TIMES)
    with corejax.config.override(legacy_prng_key="warn"):
        for _ in range(TIMES):
            with pytest.warns(UserWarning, match="normal: the key is a raw array"):
                random.normal(key)
    with corejax.config.override(legacy_prng_key="error"), pytest.raises(ValueError, match="raw array"):
        random.normal(key)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        random.normal(key)


@pytest.mark.parametrize("size", [5, 600])
def test_traced(size):
    key = random.key(1)

    def draw(key, a=2.0):
        return random.rayleigh(key, a, (size,))

    text = str(corejax.make_jaxpr(anew("rayleigh"), static_argnums=(1, 2))(key, 2.0, (size,)))
    eager = again(draw, *[key] * TIMES)
    assert str(corejax.make_jaxpr(draw)(key)) == text
    assert len(corejax.make_jaxpr(lambda: draw(key))().jaxpr.eqns) > 3
    np.testing.assert_allclose(corejax.jit(draw)(key), eager, rtol=1e-6)
    keys = random.split(key, 3)
    np.testing.assert_allclose(corejax.vmap(draw)(keys)[1], draw(keys[1]), rtol=1e-6)
    np.testing.assert_allclose(corejax.jacfwd(lambda a: draw(key, a))(2.0), eager / 2, rtol=1e-6)
    with observe.watching(lambda step, begins: seen.add(step.primitive.name)):
        seen = set()
        draw(key)
    assert ("random_bits" in seen) == (size == 5)


def test_debugging_settings():
    key = random.key(1)
    again(lambda k: random.normal(k, (4,)), *[key] * TIMES)
    again(lambda k: random.lognormal(k, float("nan"), (4,)), *[key] * TIMES)
    with corejax.debug_key_reuse(True):
        random.normal(key, (4,))
        with pytest.raises(corejax.errors.KeyReuseError):
            random.normal(key, (4,))
    with corejax.config.override(debug_nans=True):
        again(lambda k: random.normal(k, (4,)), *[key] * TIMES)
        for _ in range(3):
            with pytest.raises(FloatingPointError):
                random.lognormal(key, float("nan"), (4,))
    with corejax.config.override(check_tracer_leaks=True, check_jaxprs=True):
        again(lambda k: random.normal(k, (4,)), *[key] * TIMES)


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_generators(impl):
    key = random.key(1, impl=impl)
    for size in (4, 600):
        for _ in range(TIMES):
            assert_bits(random.normal(key, (size,)), anew("normal")(key, (size,)))


@pytest.mark.parametrize("size", [5, 600])
def test_results_and_parameters_are_not_kept(size):
    key, a = random.key(1), jnp.full((size,), 2.0)
    first = random.gamma(key, a)
    gone = [weakref.ref(first), weakref.ref(a)]
    del first, a
    gc.collect()
    assert [x() for x in gone] == [None, None]
    corejax.clear_caches()
    assert not repeating._calls and not repeating._by_settings


def test_each_result_has_memory_of_its_own():
    key = random.key(1)
    for draw in (random.normal, random.bits, random.uniform):
        outs = [draw(key, (4,)) for _ in range(TIMES)]
        for x, y in itertools.pairwise(outs):
            assert not np.shares_memory(np.asarray(x), np.asarray(y))


def test_threads():
    keys = random.split(random.key(4), 8)
    wanted = [np.asarray(anew("laplace")(k, (3, 7))) for k in keys]
    found = {}

    def run(number):
        found[number] = [[np.asarray(random.laplace(k, (3, 7))) for k in keys] for _ in range(5)]

    corejax.clear_caches()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rounds in found.values():
        np.testing.assert_array_equal(rounds, [wanted] * 5)
    assert len(found) == 4
