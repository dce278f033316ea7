"""Keys that are used twice are found: while functions run or are traced, and by a walk over programs."""

import gc

import pytest

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax import lax
from corejax.experimental.key_reuse import KeyReuseError, check_key_reuse
from tests.random import key_programs

KEY = random.key(0)
OURS = key_programs.modules(corejax)


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
        line = r"test_key_reuse\.py:\d+"
        with pytest.raises(KeyReuseError, match=rf"'random_split' of key<fry>\[\], at .*{line}.* was used at .*{line}"):
            random.split(key)
        with pytest.raises(KeyReuseError, match=rf"of 'twice', at .*{line}|'random_bits' of key<fry>\[\], at .*{line}"):
            corejax.jit(twice)(random.key(1))
        keys = random.split(random.key(2), 3)
        corejax.vmap(random.normal)(keys)
        with pytest.raises(KeyReuseError, match="random_bits"):
            corejax.vmap(random.uniform)(keys)
    random.normal(key)


@pytest.mark.parametrize("name", key_programs.REUSED)
def test_keys_used_twice_are_found(name):
    with (
        corejax.debug_key_reuse(True),
        pytest.raises(KeyReuseError, match=r"was used at .* a key may be used only once"),
    ):
        key_programs.REUSED[name](OURS)


@pytest.mark.parametrize("name", key_programs.RIGHT)
def test_keys_used_once_are_let_pass(name):
    with corejax.debug_key_reuse(True):
        key_programs.RIGHT[name](OURS)


# Where the two do not say the same, for reasons that docs/differences.md gives.
NOT_FOUND_BY_JAX = {"returned_and_used", "reshaped_first", "squeezed", "unpacked_and_all"}
REFUSED_BY_JAX = {"rematerialised", "without_keys"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*key_programs.REUSED, *key_programs.RIGHT])
def test_jax_finds_no_more(name):
    jax = pytest.importorskip("jax")
    program = (key_programs.REUSED | key_programs.RIGHT)[name]
    found = False
    with jax.debug_key_reuse(True):
        try:
            program(key_programs.modules(jax))
        except jax.errors.KeyReuseError:
            found = True
    differs = name in NOT_FOUND_BY_JAX | REFUSED_BY_JAX
    assert found is ((name in key_programs.REUSED) is not differs)


def test_keys_by_index():
    keys = random.split(random.key(0), 4)
    with corejax.debug_key_reuse(True):
        corejax.vmap(random.bits)(keys[jnp.array([2, 0])])
        random.bits(keys[jnp.int32(1)])
        for same in (lambda: keys[0], lambda: lax.dynamic_index_in_dim(keys, 2, keepdims=False), lambda: keys[::2][1]):
            with pytest.raises(KeyReuseError):
                random.bits(same())
        random.bits(jnp.where(jnp.array([True, False, True, True]), keys[3], keys[0])[0])
        keys = keys.at[1].set(random.key(5))
        random.bits(keys[1])
        with pytest.raises(KeyReuseError):
            random.bits(keys[3])
        with pytest.raises(KeyReuseError):
            corejax.vmap(random.bits)(jnp.flip(keys))


def test_chosen_by_what_is_not_known():
    draw = corejax.jit(lambda keys, i: random.bits(keys[i]))
    with corejax.debug_key_reuse(True):
        keys = random.split(random.key(0), 3)
        draw(keys, 0)
        draw(keys, 1)  # another one, for all that is known
        with pytest.raises(KeyReuseError):
            corejax.vmap(random.bits)(keys)
        keys = random.split(random.key(1), 3)
        corejax.vmap(random.bits)(keys)
        with pytest.raises(KeyReuseError):
            draw(keys, 0)
        with pytest.raises(KeyReuseError):
            corejax.jit(lambda keys, i: (random.bits(keys[i]), random.bits(keys[i])))(random.split(random.key(2)), 1)


def test_loops_that_end_apart():
    """In a batch of loops a key is the old one where a loop has ended, and a new one elsewhere."""

    def draw(key, n):
        def step(state):
            key, now = random.split(state[0])
            return key, state[1] + random.uniform(now)

        return lax.while_loop(lambda state: state[1] < n, step, (key, 0.0))

    with corejax.debug_key_reuse(True):
        for f in (corejax.vmap(draw), corejax.jit(corejax.vmap(draw))):
            keys, _ = f(random.split(random.key(0), 3), jnp.array([0.5, 1.0, 2.0]))
            corejax.vmap(random.bits)(keys)
            with pytest.raises(KeyReuseError):
                corejax.vmap(random.bits)(keys)


def test_a_call_that_fails_uses_nothing():
    def fails(key):
        random.bits(key)
        corejax.pure_callback(_fail, corejax.ShapeDtypeStruct((), "float32"))
        return corejax.pure_callback(_fail, corejax.ShapeDtypeStruct((), "float32"))

    def _fail():
        raise ValueError("no number")

    key = random.key(0)
    with corejax.debug_key_reuse(True):
        with pytest.raises(Exception, match="no number"):
            corejax.jit(fails)(key).block_until_ready()
        random.bits(key)
        with pytest.raises(KeyReuseError):
            random.split(key)
        random.split(random.clone(key))


def test_compiled_before_the_setting():
    f = corejax.jit(twice)
    f(random.key(0))
    draw = corejax.jit(random.normal)
    draw(random.key(0))
    with corejax.debug_key_reuse(True):
        with pytest.raises(KeyReuseError, match="xla_call of 'twice'"):
            f(random.key(0))
        key = random.key(1)
        draw(key)
        with pytest.raises(KeyReuseError, match="xla_call of 'normal'"):
            draw(key)
        with pytest.raises(KeyReuseError):
            corejax.jit(lambda k: twice(k)).lower(key)
    assert draw(key).shape == ()


@pytest.mark.parametrize("draw", [random.gamma, random.poisson, random.binomial])
def test_what_draws_in_several_ways(draw):
    def f(key):
        return draw(key, 3.0, *([0.5] if draw is random.binomial else []), shape=(3,))

    with corejax.debug_key_reuse(True):
        for g in (f, corejax.jit(f), lambda key: corejax.vmap(f)(key.reshape(1))):
            key = random.key(0)
            g(key)
            with pytest.raises(KeyReuseError):
                g(key)


def test_numbers_are_the_same():
    key = random.key(3)
    expected = random.normal(key, (5,)), random.normal(key, (2000,)), random.split(key, 3), random.permutation(key, 9)
    with corejax.debug_key_reuse(True):
        fresh = (random.clone(key) for _ in range(4))
        found = (
            random.normal(next(fresh), (5,)),
            random.normal(next(fresh), (2000,)),
            random.split(next(fresh), 3),
            random.permutation(next(fresh), 9),
        )
    for a, b in zip(found, expected, strict=True):
        assert (a == b).all()


def test_keys_that_are_gone_are_forgotten():
    from corejax_random.reuse import calls

    corejax.clear_caches()
    with corejax.debug_key_reuse(True):
        random.normal(random.key(9))
        corejax.jit(random.normal)(random.split(random.key(2))[0])
    gc.collect()
    assert not calls._known


def test_nothing_is_looked_at_without_the_setting():
    from corejax.extend.messages import observe
    from corejax_random.reuse import calls

    with corejax.debug_key_reuse(True):
        assert observe.checking
    assert not observe.checking
    assert not observe.watched
    key = random.key(0)
    random.split(key)
    assert id(key) not in calls._known


def _joined(keys):
    joined = jnp.stack([keys[0], keys[1]])
    return corejax.vmap(random.normal)(joined), random.normal(keys[1])


def _chosen(keys):
    chosen = jnp.where(keys.size > 3, keys[0], keys[1])
    return random.normal(chosen), random.normal(keys[0])


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
