"""What is saved comes back: dtypes, shapes, keys, Python's values, structures."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

import corejax
import corejax.numpy as jnp
from corejax import checkpoints, random, tree_util

NUMPY = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128"
OTHERS = (
    "bfloat16 int2 uint2 int4 uint4 float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz "
    "float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
)
DTYPES = f"{NUMPY} {OTHERS}".split()
SHAPES = [(), (3,), (2, 3), (0,), (2, 0, 3), (1, 1)]


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Any bits that are an element of the dtype."""
    made = np.dtype(dtype)
    bits = np.random.default_rng(0).integers(0, 256, (*shape, made.itemsize), np.uint8)
    if dtype in ("bool", "int2", "uint2"):
        bits &= 1
    elif dtype in ("int4", "uint4", "float4_e2m1fn"):
        bits &= 7
    return bits.view(made).reshape(shape)


def same(got: Any, want: Any) -> None:
    """Equal in type, dtype, shape and every bit."""
    assert type(got) is type(want)
    if not hasattr(want, "dtype"):
        assert got == want or (got != got and want != want)
        return
    assert got.dtype == want.dtype and got.shape == want.shape
    if getattr(want, "aval", None) is not None:
        assert got.aval == want.aval
        if corejax.dtypes.issubdtype(want.dtype, corejax.dtypes.prng_key):
            got, want = random.key_data(got), random.key_data(want)
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def round_trip(path: Path, tree: Any, **options: Any) -> Any:
    checkpoints.save(path / "c", tree)
    return checkpoints.restore(path / "c", **options)


def test_every_dtype_and_shape(tmp_path: Path) -> None:
    saved = {f"{dtype}{shape}": jnp.asarray(numbers(dtype, shape)) for dtype in DTYPES for shape in SHAPES}
    assert {str(x.dtype) for x in saved.values()} == set(DTYPES)
    checkpoints.save(tmp_path / "c", saved)
    device = corejax.devices()[0]
    for got in (
        checkpoints.restore(tmp_path / "c"),
        checkpoints.restore(tmp_path / "c", like=saved, check=False),
        checkpoints.restore(tmp_path / "c", shardings=device),
    ):
        assert got.keys() == saved.keys()
        for name, want in saved.items():
            same(got[name], want)
    assert all(x.committed and x.devices() == {device} for x in got.values())
    checkpoints.verify(tmp_path / "c")


def test_numpy_values(tmp_path: Path) -> None:
    saved = {
        "array": np.arange(6.0).reshape(2, 3).T,
        "strided": np.arange(20, dtype=np.int16)[::3],
        "big endian": np.arange(3, dtype=">f4"),
        "scalar": np.float64(np.pi),
        "bfloat16": ml_dtypes.bfloat16(1.5),
        "text": np.array(["one", "three"]),
        "bytes": np.array([b"one", b"three"]),
        "dates": np.array(["2026-11-22", "NaT"], "datetime64[D]"),
        "long": np.longdouble(1) / 3,
        "empty": np.empty((0, 2), "U3"),
    }
    got = round_trip(tmp_path, saved)
    for name, want in saved.items():
        same(got[name], want)
    got["array"][0, 0] = 7.0  # its own memory, to be written to
    same(checkpoints.restore(tmp_path / "c", like=saved)["array"], saved["array"])


def test_python_values(tmp_path: Path) -> None:
    values = [True, False, 0, -3, 10**30, 0.1, -0.0, math.inf, -math.inf, math.nan, 1 + 2j, complex(math.nan, -0.0), ""]
    saved = {"values": values, "text": 'any "text", \u00fc\n', "none": None}
    for got in (round_trip(tmp_path, saved), checkpoints.restore(tmp_path / "c", like=saved)):
        assert got.keys() == saved.keys() and got["text"] == saved["text"] and got["none"] is None
        for one, want in zip(got["values"], values, strict=True):
            same(one, want)
        assert math.copysign(1, got["values"][6]) == -1


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys(tmp_path: Path, impl: str) -> None:
    saved = {
        "one": random.key(3, impl=impl),
        "many": random.split(random.key(0, impl=impl), (2, 3)),
        "words": random.PRNGKey(1),
    }
    for got in (
        round_trip(tmp_path, saved),
        checkpoints.restore(tmp_path / "c", like=corejax.eval_shape(lambda: saved)),
        checkpoints.restore(tmp_path / "c", shardings=corejax.devices()[0]),
    ):
        for name, want in saved.items():
            same(got[name], want)
        np.testing.assert_array_equal(random.normal(got["one"], (3,)), random.normal(saved["one"], (3,)))


def test_weak_types_stay(tmp_path: Path) -> None:
    got = round_trip(tmp_path, {"weak": jnp.asarray(1.0), "strong": jnp.float32(1)})
    assert got["weak"].weak_type and not got["strong"].weak_type
    assert checkpoints.restore(tmp_path / "c", shardings=corejax.devices()[0])["weak"].weak_type


class Moments(NamedTuple):
    mean: Any
    square: Any


@corejax.tree.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any


@tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a: Any, b: Any, note: str) -> None:
        self.a, self.b, self.note = a, b, note

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.a, self.b), self.note

    @classmethod
    def tree_unflatten(cls, note: str, children: Any) -> Pair:
        return cls(*children, note)


def some_tree() -> Any:
    return {
        "layers": [Layer(jnp.ones((2, 3)), jnp.zeros(3)), Layer(jnp.ones(1), None)],
        "state": Moments((np.arange(2), ()), {}),
        "pair": Pair(1, jnp.float32(2), "kept where like is given"),
        "ordered": collections.OrderedDict(z=1, a=2),
        "deque": collections.deque([1, 2]),
        "odd keys": {("a", 1): 1, ("a", (2,)): 2},
        "numbers": {10: 1, 9: 2},
    }


def test_structures_with_like(tmp_path: Path) -> None:
    saved = some_tree()
    got = round_trip(tmp_path, saved, like=saved)
    assert tree_util.tree_structure(got) == tree_util.tree_structure(saved)
    for one, want in zip(tree_util.tree_leaves(got), tree_util.tree_leaves(saved), strict=True):
        same(one, want)


def test_structures_without_like(tmp_path: Path) -> None:
    got = round_trip(tmp_path, some_tree())
    assert got["layers"][0].keys() == {"w", "b"} and got["layers"][1]["b"] is None
    assert got["state"]["square"] == {} and got["state"]["mean"][1] == () and got["state"]["mean"][0].tolist() == [0, 1]
    assert got["pair"][0] == 1 and got["deque"] == [1, 2] and got["ordered"] == {"z": 1, "a": 2}
    assert got["odd keys"] == {("a", 1): 1, ("a", (2,)): 2} and got["numbers"] == {10: 1, 9: 2}


@pytest.mark.parametrize("tree", [None, (), {}, [], 3, [[None]]], ids=repr)
def test_small_trees(tmp_path: Path, tree: Any) -> None:
    assert round_trip(tmp_path, tree) == tree
    checkpoints.verify(tmp_path / "c")


def test_one_array_is_a_tree(tmp_path: Path) -> None:
    same(round_trip(tmp_path, jnp.arange(3)), jnp.arange(3))
    same(checkpoints.restore(tmp_path / "c", like=jnp.zeros(3, np.int32)), jnp.arange(3))


def test_like_says_whether_numpy_or_corejax_has_the_array(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "c", {"a": np.float32([1, 2]), "b": jnp.float32([1, 2]), "c": np.float32(1)})
    like = {"a": jnp.zeros(2), "b": np.zeros(2, np.float32), "c": corejax.ShapeDtypeStruct((), np.float32)}
    got = checkpoints.restore(tmp_path / "c", like=like)
    same(got, got)
    assert type(got["a"]) is type(got["c"]) is type(jnp.zeros(2)) and type(got["b"]) is np.ndarray


def test_other_programs_read_the_files(tmp_path: Path) -> None:
    """Arrays of one part are under readable names, in dtypes of the format."""
    x = numbers("bfloat16", (2, 3))
    checkpoints.save(
        tmp_path / "c", {"layers": [{"w": jnp.ones((2, 3)), "h": jnp.asarray(x)}], "a.b": 1, "step": np.int32(3)}
    )
    (file,) = (tmp_path / "c").glob("*/*.safetensors")
    header = json.loads(file.read_bytes()[8:].split(b"}}", 1)[0].decode() + "}}")
    assert header["layers.0.h"]["dtype"] == "BF16" and header["layers.0.h"]["shape"] == [2, 3]
    checkpoints.save(tmp_path / "d", {"layers": [{"w": jnp.ones((2, 3))}], "step": np.int32(3)})
    (file,) = (tmp_path / "d").glob("*/*.safetensors")
    loaded = load_file(file)
    assert sorted(loaded) == ["layers.0.w", "step"] and loaded["step"] == 3 and (loaded["layers.0.w"] == 1).all()


def test_names_that_would_be_the_same(tmp_path: Path) -> None:
    saved = {"a.b": np.int32(1), "a": {"b": np.int32(2)}, "a[0]": np.int32(3), "a]": [np.int32(4)], "": np.int32(5)}
    saved |= {"__metadata__": np.int32(6), "it's": np.int32(7), 'a "name"': np.int32(8), "\ud800\n": np.int32(9)}
    assert round_trip(tmp_path, saved) == saved


def test_many_files_and_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_checkpoints import files, index, saving

    monkeypatch.setattr(saving, "FILE_BYTES", 1000)
    monkeypatch.setattr(index, "BLOCK", 64)
    monkeypatch.setattr(files, "BLOCK", 64)
    saved = [np.arange(100 * i, dtype=np.float32).reshape(-1, 10) for i in range(6)]
    for got, want in zip(round_trip(tmp_path, saved), saved, strict=True):
        np.testing.assert_array_equal(got, want)
    assert len(list((tmp_path / "c").glob("*/*.safetensors"))) == 4
    checkpoints.verify(tmp_path / "c")


def test_description(tmp_path: Path) -> None:
    state = {"params": {"w": jnp.ones((2, 3)), "b": jnp.zeros(3, jnp.bfloat16)}, "step": 120, "key": random.key(0)}
    checkpoints.save(tmp_path / "step_120", state, metadata={"loss": 0.5, "of": ["a", None]})
    found = checkpoints.describe(tmp_path / "step_120")
    assert found.metadata == {"loss": 0.5, "of": ["a", None]} and found.num_processes == 1
    assert found.nbytes == 24 + 6 + 8 and len(found.leaves) == 4
    assert found.leaves[3] == ("['step']", "int", 120, 0, 0)
    assert str(found) == (
        "step_120: 4 leaves, 38 bytes, by 1 process\n"
        '  metadata: {"loss": 0.5, "of": ["a", null]}\n'
        "  ['key']          key<fry>[]\n"
        "  ['params']['b']  bfloat16[3]\n"
        "  ['params']['w']  float32[2,3]\n"
        "  ['step']         int 120"
    )
