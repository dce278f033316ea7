"""Keys that are used twice are found: while functions run or are traced, and by a walk over programs."""

import gc

import pytest

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax import lax
from corejax.experimental.key_reuse import KeyReuseError, check_key_reuse

KEY = random.key(0)


def twice(key):
    return random.normal(key) + random.uniform(key)


def same_part(key):
    keys = random.split(key)
    return random.normal(keys[0]) + random.uniform(keys[0])


def part_and_whole(key):
    keys = random.split(key)
    return random.normal(keys[0]) + jnp.sum(corejax.vmap(random.normal)(keys))


def in_a_loop(key):
    return lax.fori_loop(0, 3, lambda i, x: x + random.normal(key), 0.0)


def carried(key):
    return lax.scan(lambda k, _: (k, random.normal(k)), key, None, length=3)[1]


def in_a_branch(key):
    return lax.cond(jnp.ones(()) > 0, random.normal, lambda k: 0.0, key) + random.normal(key)


def compiled(key):
    return corejax.jit(random.normal)(key) + corejax.jit(random.normal)(key)


def right(key):
    first, second = random.split(key)
    noise = lax.fori_loop(0, 3, lambda i, x: x + random.normal(random.fold_in(first, i)), 0.0)
    drawn = lax.scan(lambda k, _: (random.split(k)[0], None), random.clone(second), None, length=3)
    return noise + lax.cond(noise > 0, random.normal, random.uniform, second) + random.normal(drawn[0])


@pytest.mark.parametrize("fun", [twice, same_part, part_and_whole, in_a_loop, carried, in_a_branch, compiled])
def test_found_in_programs(fun):
    with pytest.raises(KeyReuseError, match=r"test_key_reuse\.py:\d+"):
        check_key_reuse(fun, KEY)


def test_what_is_right_passes():
    check_key_reuse(right, KEY)
    with corejax.debug_key_reuse(True):
        key = random.key(4)
        random.choice(key, 5, (2,), replace=False)
        random.gamma(random.clone(key), 2.0)
        random.fold_in(key, 1)


def test_found_while_running():
    key = random.key(4)
    twice(key)  # the setting is off
    with corejax.debug_key_reuse(True):
        random.normal(key)
        with pytest.raises(KeyReuseError, match=r"split: the key was used at .*test_key_reuse\.py:\d+.* by normal"):
            random.split(key)
        with pytest.raises(KeyReuseError, match="uniform: the key was used"):
            corejax.jit(twice)(random.key(1))
        keys = random.split(random.key(2), 3)
        corejax.vmap(random.normal)(keys)
        with pytest.raises(KeyReuseError, match="uniform"):
            corejax.vmap(random.uniform)(keys)
    random.normal(key)


def test_keys_that_are_gone_are_forgotten():
    from corejax_random.reuse import marks

    corejax.clear_caches()
    with corejax.debug_key_reuse(True):
        random.normal(random.key(9))
    gc.collect()
    assert not marks._used


def _joined(keys):
    joined = jnp.stack([keys[0], keys[1]])
    return corejax.vmap(random.normal)(joined), random.normal(keys[1])


def _chosen(keys):
    return random.normal(jnp.where(True, keys[0], keys[1])), random.normal(keys[0])


def _overlapping(keys):
    return corejax.vmap(random.normal)(keys[:3]), corejax.vmap(random.normal)(keys[2:])


def _part_of_a_part(keys):
    return random.normal(keys[:2][0]), corejax.vmap(random.normal)(keys)


@pytest.mark.parametrize("fun", [_joined, _chosen, _overlapping, _part_of_a_part])
def test_keys_in_several_arrays(fun):
    with pytest.raises(KeyReuseError, match=r"used at .*test_key_reuse.py"):
        check_key_reuse(fun, random.split(random.key(0), 4))


def test_arrays_of_different_keys():
    def f(keys):
        apart = corejax.vmap(random.normal)(keys[:2]), corejax.vmap(random.normal)(keys[2:4:2])
        other = jnp.concatenate([random.split(keys[3], 2), keys[4:]])
        return apart, corejax.vmap(random.normal)(other), keys.at[3].set(other[0])

    check_key_reuse(f, random.split(random.key(0), 6))
