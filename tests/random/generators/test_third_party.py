"""A generator of somebody else's: a table entry of five functions, and what checks it."""

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax_random.verification import check_generator
from corejax_testing import CheckFailure


def _mixed(x):
    """A hash of 32 bits (Wellons, lowbias32)."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def _seed(value):
    return _mixed(jnp.stack([value.astype(np.uint32), np.uint32(1)[None][0] + jnp.zeros((), np.uint32)]))


def _stream(key, count):
    places = jnp.arange(count, dtype=np.uint32)
    return _mixed(_mixed(places + key[0]) ^ _mixed(key[1] + places * np.uint32(3)))


def _split(key, shape):
    size = 2 * int(np.prod(shape))
    return _mixed(_stream(key ^ np.uint32(0x9E3779B9), size)).reshape((*shape, 2))


def _bits(key, bit_width, shape):
    size = int(np.prod(shape))
    if bit_width < 64:
        return _stream(key, size).astype(f"uint{bit_width}").reshape(shape)
    both = _stream(key, 2 * size).astype(np.uint64)
    return ((both[:size] << np.uint64(32)) | both[size:]).reshape(shape)


def _fold_in(key, data):
    return _mixed(key + _mixed(data + np.uint32(0x51ED270B)))


GOOD = random.PRNGImpl((2,), _seed, _split, _bits, _fold_in, "lowbias", "low")


def test_it_is_used_as_any_other():
    dtype = random.register_generator(GOOD)
    assert random.register_generator(GOOD) is dtype and str(random.key_dtype("lowbias")) == str(dtype)
    key = random.key(5, impl="lowbias")
    assert random.key_impl(key) == "lowbias" and key.aval.str_short() == "key<low>[]"
    drawn = random.normal(key, (4,))
    np.testing.assert_allclose(corejax.jit(lambda k: random.normal(k, (4,)))(key), drawn, rtol=2e-5)
    keys = random.split(key, 3)
    each = np.stack([random.uniform(k, (2,)) for k in keys])
    np.testing.assert_array_equal(corejax.vmap(lambda k: random.uniform(k, (2,)))(keys), each)
    assert random.gamma(key, 2.0, (3,)).shape == (3,)
    with corejax.default_prng_impl("lowbias"):
        assert random.split(random.PRNGKey(5)).shape == (2, 2)


def test_it_is_checked():
    random.register_generator(GOOD)
    check_generator(GOOD)
    bad = GOOD._replace(name="constant", tag="constant", fold_in=lambda key, data: key)
    random.register_generator(bad)
    with pytest.raises(CheckFailure, match=r"generator 'constant': the words of .* depend"):
        check_generator(bad)
    random.register_generator(uneven := GOOD._replace(name="uneven", tag="uneven", random_bits=_uneven))
    with pytest.raises(CheckFailure, match=r"generator 'uneven': byte 0 .* is not uniform"):
        check_generator(uneven)


def _uneven(key, bit_width, shape):
    return _bits(key, bit_width, shape) | np.dtype(f"uint{bit_width}").type(1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"name": "threefry2x32"}, ValueError, "the name 'threefry2x32' belongs to"),
        ({"name": "other", "tag": "fry"}, ValueError, "the tag 'fry' belongs to"),
        ({"key_shape": ()}, TypeError, "key_shape of .* must be a tuple of positive integers"),
        ({"split": None}, TypeError, "split of 'lowbias' must be a function"),
        ({"name": "no name"}, TypeError, "the name of a generator must be an identifier"),
    ],
)
def test_refused(change, error, message):
    with pytest.raises(error, match=message):
        random.register_generator(GOOD._replace(**change))
    with pytest.raises(TypeError, match="takes a PRNGImpl, got 3"):
        random.register_generator(3)
