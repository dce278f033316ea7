"""Keys of random numbers as arguments and results of exported functions, here and in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export, lax, random

KEY = random.key(0)


def exported(f: Any, *args: Any, vjp_order: int = 0) -> Any:
    """A function that went through an artifact."""
    return export.deserialize(export.export(corejax.jit(f))(*args).serialize(vjp_order=vjp_order))


def words(keys: Any) -> np.ndarray:
    return np.asarray(random.key_data(keys))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_arguments_and_results(impl: str) -> None:
    key = random.key(3, impl=impl)
    found = exported(lambda key: (random.split(key, 2), random.normal(key, (3,)), key), key)
    assert [aval.str_short() for aval in found.out_avals] == [f"{KEYS[impl]}[2]", "f32[3]", f"{KEYS[impl]}[]"]
    split, drawn, same = found.call(key)
    np.testing.assert_array_equal(words(split), words(random.split(key, 2)))
    np.testing.assert_array_equal(words(same), words(key))
    np.testing.assert_allclose(drawn, random.normal(key, (3,)), rtol=1e-5)
    assert split.dtype == key.dtype


KEYS = {"threefry2x32": "key<fry>", "rbg": "key<rbg>", "unsafe_rbg": "key<urbg>"}


def test_keys_are_their_words_inside_of_the_module() -> None:
    found = export.export(corejax.jit(lambda key: random.split(key, 5)))(KEY)
    text = found.mlir_module()
    assert "tensor<2xui32>" in text and "tensor<5x2xui32>" in text


def test_one_that_is_not_used_and_one_that_is_closed_over() -> None:
    found = exported(lambda unused, x: x + random.normal(KEY, x.shape), KEY, jnp.zeros(3))
    np.testing.assert_allclose(found.call(random.key(9), jnp.zeros(3)), random.normal(KEY, (3,)), rtol=1e-5)


def test_structures() -> None:
    state = {"key": KEY, "x": jnp.ones(2)}

    def step(state: Any) -> Any:
        key, drawing = random.split(state["key"])
        return {"key": key, "x": state["x"] + random.normal(drawing, (2,))}

    found = exported(step, state)
    once, twice = found.call(state), found.call(found.call(state))
    np.testing.assert_allclose(once["x"], step(state)["x"], rtol=1e-5)
    np.testing.assert_allclose(twice["x"], step(step(state))["x"], rtol=1e-5)
    last, _ = lax.scan(lambda state, _: (found.call(state), None), state, None, length=2)
    np.testing.assert_array_equal(words(last["key"]), words(twice["key"]))


def test_transformations() -> None:
    keys = random.split(KEY, 3)
    draw = exported(lambda key: random.uniform(key, (2,)), KEY).call
    wanted = corejax.vmap(lambda key: random.uniform(key, (2,)))(keys)
    for call in (corejax.vmap(draw), corejax.jit(corejax.vmap(draw)), lambda keys: lax.map(draw, keys)):
        np.testing.assert_array_equal(call(keys), wanted)
    again = exported(lambda key: draw(key) * 2, KEY)  # an exported function inside of one
    np.testing.assert_array_equal(again.call(KEY), draw(KEY) * 2)


def test_derivatives() -> None:
    def f(key: Any, x: Any) -> Any:
        return jnp.sum(jnp.sin(x) * random.normal(key, x.shape))

    x = jnp.arange(3.0)
    found = exported(f, KEY, x, vjp_order=2)
    np.testing.assert_allclose(corejax.grad(found.call, 1)(KEY, x), corejax.grad(f, 1)(KEY, x), rtol=1e-5)
    pushed = [corejax.jvp(lambda x, g=g: g(KEY, x), (x,), (x + 1,))[1] for g in (found.call, f)]
    np.testing.assert_allclose(*pushed, rtol=1e-5)


def test_sizes_that_are_symbols() -> None:
    (many,) = export.symbolic_shape("many")
    found = exported(corejax.vmap(random.bits), corejax.ShapeDtypeStruct((many,), KEY.dtype))
    assert found.in_avals[0].str_short() == "key<fry>[many]"
    for count in (1, 4):
        keys = random.split(KEY, count)
        np.testing.assert_array_equal(found.call(keys), corejax.vmap(random.bits)(keys))


def test_others_are_refused() -> None:
    found = exported(random.bits, KEY)
    for other, shown in ((random.key(0, impl="rbg"), r"key<rbg>\[\]"), (words(KEY), r"u32\[2\]")):
        with pytest.raises(ValueError, match=rf"it takes key<fry>\[\] as argument args\[0\], got {shown}"):
            found.call(other)
    with pytest.raises(ValueError, match=r"it takes u32\[2\] as argument args\[0\], got key<fry>\[\]"):
        exported(random.bits, words(KEY)).call(KEY)


LOADING = """
import sys
import numpy as np
from corejax import export
found = export.deserialize(open(sys.argv[1], "rb").read())
import corejax
print(np.asarray(found.call(corejax.random.key(5))).tolist(), found.in_avals)
"""
REGISTERING = """
import sys, corejax
import corejax.numpy as jnp
from corejax import export, random
fry = random.PRNGImpl(
    key_shape=(3,), name="nearly", tag="nearly", seed=lambda seed: jnp.stack([seed] * 3).astype("uint32"),
    split=lambda key, shape: jnp.broadcast_to(key, (*shape, 3)) + 1,
    random_bits=lambda key, width, shape: jnp.zeros(shape, f"uint{width}") + key[0].astype(f"uint{width}"),
    fold_in=lambda key, data: key + data,
)
random.register_generator(fry)
key = random.key(5, impl="nearly")
found = export.export(corejax.jit(lambda key: (random.bits(key, (2,)), random.split(key))))(key)
open(sys.argv[1], "wb").write(found.serialize())
print(export.deserialize(found.serialize()).call(key)[0].tolist())
"""


def _process(program: str, *args: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *map(str, args)], capture_output=True, text=True, check=False)


def test_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "artifact"
    path.write_bytes(export.export(corejax.jit(lambda key: random.bits(key, (2,))))(KEY).serialize())
    done = _process(LOADING, path)
    assert done.stdout.startswith(str(random.bits(random.key(5), (2,)).tolist())), done.stderr
    assert "key<fry>[]" in done.stdout


def test_a_generator_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "artifact"
    made = _process(REGISTERING, path)
    assert made.stdout.strip() == "[5, 5]", made.stderr
    with pytest.raises(ValueError, match=r"arrays of dtype key<nearly>, which is not known in .*register_generator"):
        export.deserialize(path.read_bytes())
