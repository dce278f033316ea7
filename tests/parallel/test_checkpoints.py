"""Checkpoints of arrays over several devices, restored into other layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P, checkpoints, random
from corejax.checkpoints import CheckpointError

WHOLE = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)


def over(shape: tuple[int, ...], *spec: Any, names: str = "abc", first: int = 0) -> NamedSharding:
    """A sharding over a mesh of the devices from a number on."""
    count = int(np.prod(shape))
    devices = np.array(corejax.devices()[first : first + count]).reshape(shape)
    return NamedSharding(corejax.sharding.Mesh(devices, tuple(names[: len(shape)])), P(*spec))


LAYOUTS = {
    "one device": lambda: corejax.devices()[3],
    "rows": lambda: over((8,), "a"),
    "columns": lambda: over((8,), None, "a"),
    "rows of half the devices": lambda: over((4,), "a", first=4),
    "tiles": lambda: over((4, 2), "a", "b"),
    "tiles, the other way": lambda: over((2, 4), "b", "a"),
    "both axes": lambda: over((2, 4), ("b", "a")),
    "copies of rows": lambda: over((2, 4), "a"),
    "copies": lambda: over((8,)),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint for each layout, of the same array."""
    path = tmp_path_factory.mktemp("layouts")
    for name, layout in LAYOUTS.items():
        checkpoints.save(path / name, {"w": corejax.device_put(WHOLE, layout())})
    return path


@pytest.mark.sampled
@pytest.mark.parametrize("after", LAYOUTS)
@pytest.mark.parametrize("before", LAYOUTS)
def test_any_layout_from_any_other(saved: Path, before: str, after: str) -> None:
    layout = LAYOUTS[after]()
    got = checkpoints.restore(saved / before, shardings=layout)["w"]
    want = corejax.device_put(WHOLE, layout)
    assert got.sharding == want.sharding and got.committed
    np.testing.assert_array_equal(got, WHOLE)
    for one, other in zip(got.addressable_shards, want.addressable_shards, strict=True):
        assert one.device == other.device
        np.testing.assert_array_equal(one.data, other.data)


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_part_is_there_once(saved: Path, name: str) -> None:
    (leaf,) = checkpoints.describe(saved / name).leaves
    placed = corejax.device_put(WHOLE, LAYOUTS[name]())
    assert leaf.parts == len({str(shard.index) for shard in placed.addressable_shards})
    (file,) = (saved / name).glob("*/*.safetensors")
    assert WHOLE.nbytes < file.stat().st_size < WHOLE.nbytes + 2000
    on_host = checkpoints.restore(saved / name)["w"]
    assert not on_host.committed
    np.testing.assert_array_equal(on_host, WHOLE)


def test_like_says_where(saved: Path) -> None:
    tiles, rows = over((4, 2), "a", "b"), over((8,), "a")
    like = {"w": corejax.device_put(WHOLE * 0, tiles)}
    assert checkpoints.restore(saved / "rows", like)["w"].sharding == tiles
    like = {"w": corejax.ShapeDtypeStruct(WHOLE.shape, np.float32, sharding=tiles)}
    assert checkpoints.restore(saved / "rows", like)["w"].sharding == tiles
    assert checkpoints.restore(saved / "rows", like, shardings=rows)["w"].sharding == rows
    assert not checkpoints.restore(saved / "rows", {"w": jnp.zeros(WHOLE.shape)})["w"].committed
    with corejax.set_mesh(rows.mesh):
        assert checkpoints.restore(saved / "rows", shardings={"w": P("a")})["w"].sharding == rows


def test_keys_and_weak_types(tmp_path: Path) -> None:
    tree = {
        "keys": corejax.device_put(random.split(random.key(0), 8), over((4, 2), "a")),
        "table": corejax.device_put(random.split(random.key(1), (2, 4)), over((2, 4), "a", "b")),
        "weak": corejax.device_put(jnp.asarray(2.0), over((8,))),
    }
    checkpoints.save(tmp_path / "c", tree)
    other = {"keys": over((8,), "a"), "table": over((2, 4), None, "b"), "weak": over((4,))}
    for places in (None, other):
        got = checkpoints.restore(tmp_path / "c", tree, shardings=places)
        for name, want in tree.items():
            assert got[name].sharding == (places or {name: want.sharding})[name]
            assert got[name].aval == want.aval
            if name != "weak":
                np.testing.assert_array_equal(random.key_data(got[name]), random.key_data(want))
    drawn = corejax.vmap(random.uniform)(got["keys"])
    np.testing.assert_array_equal(drawn, corejax.vmap(random.uniform)(tree["keys"]))


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(0, 8), (8, 0), (0, 3)])
@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "complex128", "bool"])
def test_no_elements_and_odd_dtypes(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    spec = [None if size % 8 or not size else "a" for size in shape]
    full = np.arange(16).reshape(8, 2).astype(bool if dtype == "bool" else np.int8)
    tree = [
        corejax.device_put(jnp.zeros(shape, dtype), over((8,), *spec)),
        corejax.device_put(jnp.asarray(full).astype(dtype), over((8,), "a")),
    ]
    checkpoints.save(tmp_path / "c", tree)
    for places in (None, over((4,)), corejax.devices()[1]):
        for got, want in zip(checkpoints.restore(tmp_path / "c", tree, shardings=places), tree, strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def test_layouts_that_the_compiler_chose(tmp_path: Path) -> None:
    x = corejax.device_put(WHOLE, over((4, 2), "a", "b"))
    y = corejax.jit(lambda x: (x.T, x.reshape(4, 4, 8), x @ x.T))(x)
    checkpoints.save(tmp_path / "c", y)
    for got, want in zip(checkpoints.restore(tmp_path / "c", y), y, strict=True):
        assert got.sharding.is_equivalent_to(want.sharding, want.ndim)
        np.testing.assert_array_equal(got, want)


def test_training_goes_on_elsewhere(tmp_path: Path) -> None:
    """Steps, a checkpoint, another mesh, more steps: the numbers of a training that was not cut."""

    @corejax.jit
    def step(state: Any, x: Any) -> Any:
        gradient = corejax.grad(lambda w: jnp.mean((x @ w) ** 2))(state["w"])
        return {"w": state["w"] - 0.01 * gradient, "step": state["step"] + 1}

    x = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    state = corejax.device_put({"w": jnp.ones((8, 4)), "step": jnp.int32(0)}, over((8,)))
    state["w"] = corejax.device_put(state["w"], over((8,), "a"))
    for _ in range(3):
        state = step(state, corejax.device_put(x, over((8,), "a")))
    checkpoints.save(tmp_path / "c", state)
    whole = step(state, corejax.device_put(x, over((8,), "a")))
    places = {"w": over((2, 2), "a", "b"), "step": over((2, 2))}
    again = checkpoints.restore(tmp_path / "c", like=corejax.eval_shape(lambda: state), shardings=places)
    again = step(again, corejax.device_put(x, over((2, 2), "a")))
    assert int(again["step"]) == 4
    np.testing.assert_allclose(again["w"], whole["w"], rtol=1e-6)


def test_donated_while_a_thread_writes(tmp_path: Path) -> None:
    x = corejax.device_put(WHOLE, over((8,), "a"))
    saving = checkpoints.save_async(tmp_path / "c", x)
    y = corejax.jit(lambda x: -x, donate_argnums=0)(x).block_until_ready()
    saving.wait()
    np.testing.assert_array_equal(checkpoints.restore(tmp_path / "c"), WHOLE)
    np.testing.assert_array_equal(y, -WHOLE)


def test_damage_is_of_a_part(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "c", {"w": corejax.device_put(WHOLE, over((4, 2), "a", "b"))})
    (file,) = (tmp_path / "c").glob("*/*.safetensors")
    data = bytearray(file.read_bytes())
    at = data.index(WHOLE[4:8, 4:8].tobytes())
    data[at] ^= 1
    file.write_bytes(data)
    for read in (checkpoints.restore, checkpoints.verify):
        with pytest.raises(CheckpointError, match=r"\['w'\] float32\[16,8\], part \[4:8, 4:8\] in .*: bytes 0 to 64"):
            read(tmp_path / "c")


def test_a_sharding_that_does_not_divide(saved: Path) -> None:
    with pytest.raises(ValueError, match=r"restore: \['w'\] float32\[16,8\]: .* splits axis 0 into 3 parts"):
        checkpoints.restore(saved / "rows", shardings=over((3,), "a"))
