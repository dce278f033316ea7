"""What does not fit is an error that says what, where, and what to do."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkpoints


class Colour(enum.Enum):
    RED = 1


def leaves_nothing(path: Path) -> bool:
    return not any(path.iterdir())


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (
            {"a": [1, object]},
            r"save: \['a'\]\[1\] is <class 'object'> of type type; leaves can be arrays, Python numbers",
        ),
        ({"a": Colour.RED}, r"\['a'\] is <Colour.RED: 1> of type Colour"),
        ({"a": b"bytes"}, r"\['a'\] is b'bytes' of type bytes"),
        (print, "the tree, which is one leaf, is <built-in function print>"),
        ({"a": np.array([None, 1])}, r"\['a'\]: arrays of dtype object cannot be saved"),
        ({"a": np.zeros(2, [("x", "f4")])}, r"\['a'\]: arrays of dtype \[\('x', '<f4'\)\] cannot be saved"),
    ],
    ids=["class", "enum", "bytes", "function", "objects", "fields"],
)
def test_leaves(tmp_path: Path, tree: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        checkpoints.save(tmp_path / "c", tree)
    assert leaves_nothing(tmp_path)


def test_traced_values(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        checkpoints.save(tmp_path / "c", {"x": x})
        return x

    for transformed, x in ((corejax.jit(f), 1.0), (corejax.grad(f), 1.0), (corejax.vmap(f), jnp.ones(3))):
        with pytest.raises(TypeError, match=r"save: \['x'\] is traced"):
            transformed(x)
    assert leaves_nothing(tmp_path)


def test_donated_arrays(tmp_path: Path) -> None:
    x = jnp.ones(1000)
    corejax.jit(lambda x: x + 1, donate_argnums=0)(x)
    with pytest.raises(RuntimeError, match=r"deleted|donated") as caught:
        checkpoints.save(tmp_path / "c", {"w": x})
    assert caught.value.__notes__ == ["save: the array is ['w'] of the tree"]
    assert leaves_nothing(tmp_path)


@pytest.mark.parametrize("metadata", [{"a": np.float32(1)}, float("nan"), {1, 2}], ids=repr)
def test_metadata(tmp_path: Path, metadata: Any) -> None:
    with pytest.raises(TypeError, match="JSON cannot represent the metadata"):
        checkpoints.save(tmp_path / "c", {}, metadata=metadata)


@pytest.mark.parametrize("seconds", [0, -1.0, "1", True])
def test_timeouts(tmp_path: Path, seconds: Any) -> None:
    with pytest.raises(ValueError, match="save: timeout_seconds must be a positive number, got"):
        checkpoints.save(tmp_path / "c", {}, timeout_seconds=seconds)


def test_places(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="save: path must be a path, got 3 of type int"):
        checkpoints.save(3, {})  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"there is no directory .*/no for the checkpoint c"):
        checkpoints.save(tmp_path / "no" / "c", {})
    checkpoints.save(tmp_path / "c", {"a": 1})
    with pytest.raises(FileExistsError, match=r"there is a checkpoint .*/c; overwrite=True replaces it"):
        checkpoints.save(tmp_path / "c", {"a": 2})
    assert checkpoints.restore(tmp_path / "c") == {"a": 1}
    (tmp_path / "file").write_text("mine")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "mine").write_text("mine")
    for name in ("file", "directory"):
        with pytest.raises(FileExistsError, match=f"{name} exists and is not a checkpoint, so it is not replaced"):
            checkpoints.save(tmp_path / name, {}, overwrite=True)
    (tmp_path / "empty").mkdir()
    checkpoints.save(tmp_path / "empty", {"a": 2})
    assert checkpoints.restore(tmp_path / "empty") == {"a": 2}


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    checkpoints.save(tmp_path / "step_1", {})
    checkpoints.save(tmp_path / "step_2", {})
    for name, words in [
        ("missing", "there is no checkpoint .*/missing: no such directory"),
        ("file", "file is not a checkpoint: it is a file"),
        ("", "there is no index.json in it; it contains the checkpoints step_1, step_2"),
    ]:
        for function in (checkpoints.restore, checkpoints.describe, checkpoints.verify):
            with pytest.raises(FileNotFoundError, match=words):
                function(tmp_path / name)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint."""
    tree = {"w": jnp.ones((2, 3)), "layers": [{"b": np.zeros(3)}, None], "step": 3, "key": corejax.random.key(0)}
    checkpoints.save(tmp_path / "c", tree)
    return tmp_path / "c"


def like(**changes: Any) -> Any:
    return {
        "w": np.ones((2, 3), np.float32),
        "layers": [{"b": np.zeros(3)}, None],
        "step": 0,
        "key": corejax.random.key(1),
        **changes,
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (like(more=1), r"at \['more'\] like has a leaf, but the checkpoint has none$"),
        (like(layers=[{"b": np.zeros(3)}]), r"at \['layers'\] the checkpoint has None under 1, but like has none"),
        (like(layers=[{"b": np.zeros(3)}, 1]), r"at \['layers'\]\[1\] the checkpoint has None, but like has a leaf"),
        (like(layers=[]), r"at \['layers'\] the checkpoint has a dict with 'b' under 0, but like has none"),
        (like(layers=1), r"at \['layers'\] the checkpoint has a list of 2, but like has a leaf"),
        (like(w={"x": 1, "y": 2}), r"at \['w'\] the checkpoint has a leaf, but like has a dict with 'x', 'y'"),
        (like(w=None), r"at \['w'\] the checkpoint has a leaf, but like has None.*partial=True skips"),
        ({}, r"at the root the checkpoint has a leaf under 'key', but like has none; .*partial=True skips"),
        ([1], r"at \[0\] like has a leaf, but the checkpoint has none"),
        (3, "at the root the checkpoint has a dict with 'key', 'layers', 'step', 'w', but like has a leaf"),
    ],
    ids=str,
)
def test_structures(saved: Path, given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"restore: the checkpoint {saved} and like differ in structure: .*{words}"):
        checkpoints.restore(saved, given)


def test_partial(saved: Path) -> None:
    got = checkpoints.restore(saved, {"w": np.zeros((2, 3), np.float32), "layers": None}, partial=True)
    assert got.keys() == {"w", "layers"} and got["layers"] is None and (got["w"] == 1).all()
    with pytest.raises(ValueError, match=r"at \['v'\] like has a leaf, but the checkpoint has none"):
        checkpoints.restore(saved, {"v": 1}, partial=True)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            like(w=np.ones((3, 2), np.float32)),
            ValueError,
            r"\['w'\] of .* is float32\[2,3\], but like has float32\[3,2\]",
        ),
        (
            like(w=corejax.ShapeDtypeStruct((2, 3), jnp.bfloat16)),
            ValueError,
            r"\['w'\] of .* like has bfloat16\[2,3\] there. Use float32 in like, and convert .*x.astype\('bfloat16'\)",
        ),
        (
            like(w=1.0),
            TypeError,
            r"\['w'\] of .* is a float32\[2,3\], but like has 1.0 of type float there; it must be an array",
        ),
        (
            like(step=np.int32(1)),
            TypeError,
            r"\['step'\] of .* is an int, but like has int32\[\] there; it must be an int",
        ),
        (like(step="3"), TypeError, r"\['step'\] .* like has '3' of type str"),
        (like(step=True), TypeError, r"\['step'\] .* like has True of type bool"),
        (like(key=np.zeros(2, np.uint32)), ValueError, r"\['key'\] of .* is key<fry>\[\], but like has uint32\[2\]"),
        (like(key=corejax.random.key(0, impl="rbg")), ValueError, r"\['key'\] .* like has key<rbg>\[\]"),
    ],
    ids=["shape", "dtype", "number", "array", "text", "bool", "words", "generator"],
)
def test_leaves_that_differ(saved: Path, given: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        checkpoints.restore(saved, given)


def test_shardings(saved: Path) -> None:
    device = corejax.devices()[0]
    got = checkpoints.restore(saved, shardings={"w": device, "layers": None, "step": None, "key": None})
    assert got["w"].committed and type(got["layers"][0]["b"]) is np.ndarray
    with pytest.raises(
        TypeError, match=r"restore: shardings, of \['w'\]: expected a sharding .* got 'cpu' of type str"
    ):
        checkpoints.restore(saved, shardings={"w": "cpu", "layers": None, "step": None, "key": None})
    with pytest.raises(ValueError, match="restore: shardings are not a prefix of the tree"):
        checkpoints.restore(saved, shardings={"w": device})


@pytest.fixture
def nobody() -> Iterator[None]:
    """The superuser, who may do everything, is somebody else meanwhile."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


def test_what_may_not_be_read_or_written(saved: Path, nobody: None) -> None:
    if os.getuid() == os.geteuid():
        (saved / "index.json").chmod(0)
    with pytest.raises(PermissionError, match=r"index\.json"):
        checkpoints.restore(saved)
    if os.getuid() == os.geteuid():
        saved.parent.chmod(0o500)
    with pytest.raises(PermissionError):
        checkpoints.save(saved.parent / "d", {})
