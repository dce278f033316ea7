"""Keys: made, split, folded, moved about as arrays, and refused where they are none; words as jax's."""

import pickle

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax import lax
from corejax.extend.programs import check_jaxpr, parse_jaxpr

jax = pytest.importorskip("jax")

KEY = random.key(3)
IMPLS = ["threefry2x32", "rbg", "unsafe_rbg"]


def words(keys):
    return np.asarray(random.key_data(keys))


def assert_words(keys, jax_keys):
    np.testing.assert_array_equal(words(keys), np.asarray(jax.random.key_data(jax_keys)))


@pytest.mark.parametrize("seed", [0, 7, -1, 2**31 - 1, 2**32 + 7, np.int32(-5), np.uint8(200), np.int64(2**40 + 5)])
def test_seeds(seed):
    assert_words(random.key(seed), jax.random.key(seed))
    with jax.enable_x64(True), corejax.config.override(enable_x64=True):
        assert_words(random.key(seed), jax.random.key(seed))


def test_a_boolean_is_a_seed() -> None:
    for one in (True, np.bool_(True), jnp.asarray(True)):
        assert bool(random.key(one) == random.key(1))
        np.testing.assert_array_equal(random.PRNGKey(one), random.PRNGKey(1))


@pytest.mark.parametrize(
    ("impl", "partitionable"), [("threefry2x32", True), ("threefry2x32", False), ("rbg", True), ("unsafe_rbg", False)]
)
def test_keys_of_keys(impl, partitionable):
    with jax.threefry_partitionable(partitionable), corejax.threefry_partitionable(partitionable):
        key, jax_key = random.key(5, impl=impl), jax.random.key(5, impl=impl)
        assert_words(random.split(key, 3), jax.random.split(jax_key, 3))
        assert_words(random.split(key, (2, 1)), jax.random.split(jax_key, (2, 1)))
        assert_words(random.fold_in(key, 9), jax.random.fold_in(jax_key, 9))
        for dtype in ("uint8", "uint16", "uint32"):
            drawn = random.bits(key, (5,), dtype)
            np.testing.assert_array_equal(drawn, jax.random.bits(jax_key, (5,), dtype))
        np.testing.assert_array_equal(random.bits(key, (3,), "uint64").shape, (3,))
        compiled = corejax.jit(lambda k: (random.split(k, 70), random.fold_in(k, 9), random.bits(k, (70,), "uint8")))(
            key
        )
        assert_words(compiled[0], jax.random.split(jax_key, 70))
        np.testing.assert_array_equal(words(compiled[0]), words(random.split(key, 70)))
        np.testing.assert_array_equal(words(compiled[1]), words(random.fold_in(key, 9)))
        np.testing.assert_array_equal(compiled[2], random.bits(key, (70,), "uint8"))


def test_mapped_as_jax():
    keys, jax_keys = random.split(KEY, 3), jax.random.split(jax.random.key(3), 3)
    data = np.arange(3, dtype=np.uint32)
    assert_words(corejax.vmap(random.fold_in)(keys, data), jax.vmap(jax.random.fold_in)(jax_keys, data))
    assert_words(
        corejax.vmap(random.fold_in, (None, 0))(KEY, data),
        jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(3), data),
    )
    assert_words(corejax.vmap(random.key)(jnp.arange(3)), jax.vmap(jax.random.key)(np.arange(3, dtype=np.int32)))
    for impl in ("rbg", "unsafe_rbg"):  # the first key draws for all
        ours, theirs = random.split(random.key(3, impl=impl), 3), jax.random.split(jax.random.key(3, impl=impl), 3)
        drawn = corejax.vmap(lambda k: random.bits(k, (2,)))(ours)
        np.testing.assert_array_equal(drawn, jax.vmap(lambda k: jax.random.bits(k, (2,)))(theirs))
        assert_words(corejax.vmap(random.split)(ours), jax.vmap(jax.random.split)(theirs))


def test_wherever_it_runs_it_is_the_same():
    keys = random.split(KEY, 4)
    draw = lambda key: random.uniform(key, (3,), minval=-1.0, maxval=2.5)
    each = np.stack([draw(key) for key in keys])
    np.testing.assert_array_equal(corejax.vmap(draw)(keys), each)
    np.testing.assert_array_equal(corejax.jit(corejax.vmap(draw))(keys), each)
    np.testing.assert_array_equal(lax.map(draw, keys), each)
    np.testing.assert_array_equal(corejax.jit(lambda ks: lax.scan(lambda c, k: (c, draw(k)), 0, ks)[1])(keys), each)

    def loop(key):
        step = lambda i, state: (random.fold_in(state[0], i), state[1] + draw(state[0]))
        return lax.fori_loop(0, 3, step, (key, jnp.zeros(3)))[1]

    np.testing.assert_allclose(corejax.jit(loop)(KEY), loop(KEY), rtol=1e-6)
    nested = corejax.vmap(corejax.grad(lambda x, key: jnp.sum(x * random.normal(key, (3,)))), (None, 0))
    np.testing.assert_allclose(nested(2.0, keys), corejax.jit(nested)(2.0, keys), rtol=1e-5)


@pytest.mark.usefixtures("optimised_oracle")
def test_large_draws_are_compiled_to_the_same():
    for count in (511, 512, 5000):
        np.testing.assert_array_equal(
            random.uniform(KEY, (count,), minval=-2.0, maxval=3.3),
            jax.random.uniform(jax.random.key(3), (count,), minval=-2.0, maxval=3.3),
        )
    np.testing.assert_array_equal(
        random.randint(KEY, (999,), 0, 10), jax.random.randint(jax.random.key(3), (999,), 0, 10)
    )


def test_raw_words():
    raw = random.PRNGKey(3)
    assert raw.dtype == np.uint32 and random.split(raw).shape == (2, 2) and random.fold_in(raw, 1).shape == (2,)
    np.testing.assert_array_equal(random.normal(raw, (3,)), random.normal(KEY, (3,)))
    np.testing.assert_array_equal(corejax.jit(lambda k: random.split(k)[1])(raw), random.split(raw)[1])
    np.testing.assert_array_equal(words(random.wrap_key_data(raw)), raw)
    np.testing.assert_array_equal(words(corejax.vmap(random.wrap_key_data)(random.split(raw))), random.split(raw))
    with corejax.default_prng_impl("rbg"):
        assert random.PRNGKey(3).shape == (4,) and random.uniform(random.PRNGKey(3), (2,)).shape == (2,)
    with corejax.enable_custom_prng():
        assert random.key_impl(random.PRNGKey(3)) == "threefry2x32"
    with corejax.legacy_prng_key("error"), pytest.raises(ValueError, match="normal: the key is a raw array of words"):
        random.normal(raw)
    with corejax.legacy_prng_key("warn"), pytest.warns(UserWarning, match="raw array of words"):
        random.normal(raw)


def test_as_arrays():
    keys = random.split(KEY, (2, 3))
    assert keys.shape == (2, 3) and str(keys.aval) == str(random.split(KEY, 6).reshape(2, 3).aval)
    np.testing.assert_array_equal(words(keys[1, 2]), words(random.split(KEY, 6)[5]))
    first, second = random.split(KEY)
    np.testing.assert_array_equal(words(jnp.stack([first, second])), words(random.split(KEY)))
    assert random.key_impl(keys) == "threefry2x32" and random.key_dtype() == keys.dtype
    assert repr(KEY) == "Array((), dtype=key<fry>) overlaying:\n[0 3]"
    with pytest.raises((TypeError, ValueError), match="are not numbers"):
        KEY + 1
    with pytest.raises(TypeError, match="key_data"):
        np.asarray(KEY)


def test_programs_print_and_parse():
    def f(raw, seed):
        key = random.fold_in(random.wrap_key_data(raw), 2)
        return random.bits(random.clone(key), (2,)), random.split(random.key(seed)), random.gamma(key, jnp.ones(2))

    program = corejax.make_jaxpr(f)(random.PRNGKey(0), 1)
    check_jaxpr(program)
    assert str(parse_jaxpr(str(program))) == str(program)
    text = str(program)
    for part in (
        "random_wrap[impl='threefry2x32']",
        "random_seed[impl='threefry2x32']",
        "key<fry>[2] = random_split[shape=(2,)]",
    ):
        assert part in text
    no_derivative = corejax.grad(lambda x, key: x * random.uniform(key))(2.0, KEY)
    assert no_derivative == random.uniform(KEY)


def test_the_setting_is_part_of_what_is_compiled():
    draw = corejax.jit(lambda key: random.bits(key, (4,)))
    now = np.asarray(draw(KEY))
    with corejax.threefry_partitionable(False):
        assert (np.asarray(draw(KEY)) != now).any()
    np.testing.assert_array_equal(draw(KEY), now)


REFUSED = [
    (
        lambda: random.normal(3),
        TypeError,
        r"normal: a key must be an array, such as corejax.random.key\(0\); got 3 of type int",
    ),
    (lambda: random.normal(None), TypeError, "normal: a key must be an array.*NoneType"),
    (
        lambda: random.normal(jnp.zeros(2)),
        TypeError,
        r"words u32\[2\] of a key for threefry2x32; got an array of dtype float32",
    ),
    (lambda: random.split(np.zeros(3, np.uint32)), TypeError, r"split: .* shape \(3,\)"),
    (
        lambda: random.normal(random.split(KEY)),
        ValueError,
        r"normal takes one key, got an array of 2 keys, of shape \(2,\)",
    ),
    (lambda: random.split(random.PRNGKey(0)[None]), ValueError, "split takes one key"),
    (lambda: random.split(KEY, -1), ValueError, "split: num must consist of nonnegative integers, got -1"),
    (lambda: random.split(KEY, 2.5), TypeError, "split: num must consist of concrete integers"),
    (lambda: random.key(KEY), TypeError, "key creates a key from an integer, got a key"),
    (lambda: random.key(1.5), TypeError, "key: PRNG key seed must be an integer, got .*f32"),
    (lambda: random.key(np.arange(3)), TypeError, r"vmap\(key\) takes one for each"),
    (lambda: random.key("a"), TypeError, "key: the seed must be an integer scalar, got 'a'"),
    (lambda: random.key(2**64), OverflowError, "64 bits, got 18446744073709551616"),
    (lambda: random.key(0, impl="mt19937"), ValueError, "key: unrecognized PRNG .* 'mt19937'; there are .*'rbg'"),
    (lambda: random.key(0, impl=3), TypeError, "key: a generator must be a name"),
    (lambda: random.key(0, impl="rbg", dtype="rbg"), ValueError, "key: Cannot specify both `impl` and `dtype`"),
    (lambda: random.fold_in(KEY, KEY), TypeError, "fold_in: data must be an integer scalar"),
    (lambda: random.fold_in(KEY, np.arange(2)), TypeError, r"fold_in: .* shape \(2,\)"),
    (lambda: random.fold_in(KEY, -1), OverflowError, r"uint32|-1"),
    (lambda: random.wrap_key_data(np.zeros(2)), TypeError, "wrap_key_data: .* float64"),
    (lambda: random.key_data(np.zeros(2)), TypeError, "key_data: "),
    (lambda: corejax.jit(random.normal)(1.0), TypeError, "normal: a key must be an array"),
    (lambda: jnp.sum(random.split(KEY)), TypeError, r"not numbers|not accept"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    call, error, message = REFUSED[number]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("offset", [5, -7])
def test_seeds_are_moved_by_a_setting(offset: int) -> None:
    jax = pytest.importorskip("jax")
    with corejax.config.override(random_seed_offset=offset):
        for make in (random.key, corejax.jit(random.key), random.PRNGKey):
            found = np.asarray(random.key_data(make(3)))
            jax.config.update("jax_random_seed_offset", offset)
            try:
                np.testing.assert_array_equal(found, jax.random.key_data(jax.random.key(3)))
            finally:
                jax.config.update("jax_random_seed_offset", 0)
    np.testing.assert_array_equal(np.asarray(random.key_data(random.key(3))), jax.random.key_data(jax.random.key(3)))
    with corejax.config.override(random_seed_offset=2**40), pytest.raises(OverflowError, match="random_seed_offset"):
        random.key(3)
    with pytest.raises(ValueError, match=r"random_seed_offset must be an integer, got 1\.5"):
        corejax.config.update("random_seed_offset", 1.5)


def test_the_dtype_of_keys_is_named_as_their_kind():
    """Libraries that check annotations (`Key[Array, ""]`) know JAX's keys by the name of their scalar type."""
    d = random.key(0).dtype
    assert d.type.__name__ == "prng_key" and issubclass(d.type, corejax.dtypes.prng_key)
    assert pickle.loads(pickle.dumps(d)) == d


def test_keys_are_close_to_themselves() -> None:
    keys = corejax.random.split(corejax.random.key(0), 2)
    np.testing.assert_array_equal(corejax.numpy.isclose(keys, keys[::-1]), [False, False])
    assert corejax.numpy.allclose(keys, keys)
