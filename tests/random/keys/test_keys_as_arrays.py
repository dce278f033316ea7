"""Keys where arrays go: refused by what computes, moved by what moves, handed to callbacks; beside jax."""

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax import lax

jax = pytest.importorskip("jax")

KEY = random.key(7)
KEYS = random.split(random.key(3), 4)
JAX_KEYS = jax.random.split(jax.random.key(3), 4)


def words(keys):
    return np.asarray(random.key_data(keys)).tolist()


def jax_words(keys):
    return np.asarray(jax.random.key_data(keys)).tolist()


COMPUTING = {
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "trunc": jnp.trunc,
    "round": jnp.round,
    "round of arrays": lambda k: k.round(),
    "isreal": jnp.isreal,
    "iscomplex": jnp.iscomplex,
    "nonzero": jnp.nonzero,
    "flatnonzero": jnp.flatnonzero,
    "argwhere": jnp.argwhere,
    "searchsorted": lambda k: jnp.searchsorted(k, k),
    "unique": jnp.unique,
    "union1d": lambda k: jnp.union1d(k, k),
    "setdiff1d": lambda k: jnp.setdiff1d(k, k),
    "power": lambda k: jnp.power(k, 1),
    "pow": lambda k: k**1,
    "any": jnp.any,
    "where": lambda k: jnp.where(k, 1, 2),
    "pad": lambda k: jnp.pad(k, 1),
    "full": lambda k: jnp.full_like(k, 1),
    "ones": lambda k: jnp.ones(2, k.dtype),
}


@pytest.mark.parametrize("name", COMPUTING)
def test_what_computes_refuses_keys(name):
    for run in (COMPUTING[name], corejax.jit(COMPUTING[name])):
        if run is not COMPUTING[name] and name in (
            "unique",
            "union1d",
            "setdiff1d",
            "nonzero",
            "flatnonzero",
            "argwhere",
        ):
            continue  # which need values
        with pytest.raises(TypeError, match="key<fry> are not numbers"):
            run(KEYS)


def test_arrays_of_keys_begin_as_zeros():
    for keys in (jnp.zeros(2, KEY.dtype), jnp.empty(2, KEY.dtype), lax.full((2,), 0, KEY.dtype)):
        assert keys.dtype == KEY.dtype and words(keys) == [[0, 0], [0, 0]]
    carry = corejax.tree.map(jnp.zeros_like, {"key": KEYS, "x": jnp.ones(3)})
    assert words(carry["key"]) == jax_words(jax.numpy.zeros_like(JAX_KEYS))
    filled = corejax.jit(
        lambda k: lax.fori_loop(0, 3, lambda i, a: a.at[i].set(random.fold_in(k, i)), jnp.empty_like(KEYS[:3]))
    )
    assert words(filled(KEY)) == words(corejax.vmap(lambda i: random.fold_in(KEY, i))(jnp.arange(3)))


def test_places_out_of_bounds_are_filled_as_in_jax():
    places = np.array([0, 9])
    wanted = jax_words(jax.numpy.take(JAX_KEYS, places, mode="fill"))
    assert words(jnp.take(KEYS, places, mode="fill")) == wanted
    assert words(corejax.jit(lambda k: jnp.take(k, places, mode="fill"))(KEYS)) == wanted


def test_callbacks_get_keys(capsys):
    seen = []

    def look(key, scale):
        seen.append(words(key))
        return np.float32(random.normal(key) * scale)

    def body(key):
        corejax.debug.callback(lambda k: seen.append(words(k)), key)
        corejax.debug.print("{}", key)
        corejax.io_callback(lambda k: seen.append(words(k)), None, key, ordered=True)
        return corejax.pure_callback(look, corejax.ShapeDtypeStruct((), "float32"), key, 2.0, vmap_method="sequential")

    for run in (body, corejax.jit(body)):
        seen.clear()
        np.testing.assert_allclose(run(KEY), 2 * random.normal(KEY), rtol=1e-6)
        corejax.effects_barrier()
        assert seen == [[0, 7]] * 3
        assert "key<fry>" in capsys.readouterr().out
    double = lambda key: corejax.pure_callback(
        look, corejax.ShapeDtypeStruct((), "float32"), key, 2.0, vmap_method="sequential"
    )
    np.testing.assert_allclose(
        corejax.jit(corejax.vmap(double))(KEYS), 2 * corejax.vmap(random.normal)(KEYS), rtol=1e-6
    )


def test_device_get_leaves_keys_as_they_are():
    found = corejax.device_get({"key": KEYS, "x": jnp.ones(2)})
    assert words(found["key"]) == words(KEYS) and type(found["x"]) is np.ndarray


@pytest.mark.parametrize("axis", [0, 1])
def test_arrays_of_keys_are_permuted_and_chosen_from(axis):
    grid, jax_grid = KEYS.reshape(2, 2), JAX_KEYS.reshape(2, 2)
    assert words(random.permutation(KEY, grid, axis)) == jax_words(
        jax.random.permutation(jax.random.key(7), jax_grid, axis)
    )
    assert words(random.choice(KEY, grid, (3,), axis=axis)) == jax_words(
        jax.random.choice(jax.random.key(7), jax_grid, (3,), axis=axis)
    )
    numbers = random.permutation(KEY, 4)
    assert words(random.permutation(KEY, KEYS)) == words(KEYS[numbers])
    with pytest.raises(TypeError, match="permutation: x must have numbers if independent is true"):
        random.permutation(KEY, KEYS, independent=True)


def test_kinds_of_dtypes():
    assert jnp.issubdtype(KEY.dtype, corejax.dtypes.prng_key) and jnp.issubdtype(KEY.dtype, corejax.dtypes.extended)
    assert not jnp.issubdtype(KEY.dtype, np.number) and not jnp.issubdtype("uint32", corejax.dtypes.prng_key)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "nansum", "nanprod", "nanmax", "nanmin"])
def test_one_key_has_no_sum(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: elements of dtype key<fry> are not numbers"):
        getattr(jnp, name)(corejax.random.key(0))
