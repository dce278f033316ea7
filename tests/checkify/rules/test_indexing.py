"""Indices out of bounds, against jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax
from tests.checkify.oracle import OURS, Make, Pair, message

X = np.arange(12, dtype=np.float32).reshape(3, 4)
READS: dict[str, Make] = {
    "x[i]": lambda m: lambda x, i: x[i],
    "x[..., i]": lambda m: lambda x, i: x[..., i],
    "take": lambda m: lambda x, i: m.np.take(x, i, axis=1, mode="clip"),
}
WRITES: dict[str, Make] = {
    "set": lambda m: lambda x, i: x.at[i].set(1.0),
    "add": lambda m: lambda x, i: x.at[i, 2].add(1.0),
    "multiply": lambda m: lambda x, i: x.at[i].multiply(2.0),
    "max": lambda m: lambda x, i: x.at[:, i].max(2.0),
}
SLICES: dict[str, Make] = {
    "dynamic_slice": lambda m: lambda x, i: m.lax.dynamic_slice(x, (i, 0), (2, 3)),
    "dynamic_update_slice": lambda m: lambda x, i: m.lax.dynamic_update_slice(x, x[:1, :2], (0, i)),
}


def test_one_index() -> None:
    pair = Pair(READS | WRITES | SLICES)
    assert set(pair.agree(X, np.array(1, np.int32)).values()) == {None}
    found = pair.agree(X, np.array(-1, np.int32))  # that mode does not count from the end; slices do, and reach out
    assert [name for name, text in found.items() if text is not None] == ["take", *SLICES]
    for i in (3, 4, 77, -5):
        found = pair.agree(X, np.array(i, np.int32))
        assert {name for name, text in found.items() if text is None} <= {"x[..., i]", "take", "max"}
    assert message(READS["x[i]"](OURS), X, np.array(9), errors=checkify.float_checks) is None


def test_arrays_of_indices() -> None:
    pair = Pair(READS | WRITES)
    assert set(pair.agree(X, np.array([0, 1, 2], np.int32)).values()) == {None}
    for indices in ([0, 1, 5], [0, -7, 5], [3, 0, 0]):
        assert pair.agree(X, np.array(indices, np.int32))["x[i]"] is not None
    for make in (READS | WRITES).values():
        assert message(make(OURS), X, np.zeros((2, 0), np.int32)) is None


def test_several_axes_say_which_one() -> None:
    pair = Pair({"x[i, j]": lambda m: lambda x, i, j: x[i, j]})
    i, j = np.array([0, 1], np.int32), np.array([3, 4], np.int32)
    assert "index 4 is out of bounds for axis 1 with size 4" in str(pair.agree(X, i, j))
    assert "index 5 is out of bounds for axis 0 with size 3" in str(pair.agree(X, i + 5, j - 1))


def test_over_a_batch() -> None:
    def both(row: Any, i: Any) -> Any:
        return row[i], row.at[i].add(1.0)

    rows, columns = np.arange(3, dtype=np.int32), np.array([0, 9, 1], np.int32)
    assert "index 9 is out of bounds for axis 1 with size 4" in str(message(corejax.vmap(both), X, columns))
    assert message(corejax.vmap(both), X, rows) is None  # (jax fails here: its rule knows no batches)
    pair = Pair({"read": lambda m: lambda row, i: row[i]}, transform=lambda library, f: library.vmap(f))
    assert str(pair.agree(X, columns)["read"]).startswith("at mapped index 1: ")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_dtypes_of_indices(dtype: str) -> None:
    x = jnp.zeros(300)
    assert message(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), x, np.array(120, dtype)) is None
    if dtype.endswith("64"):
        for i in (300, 2**40):
            found = str(message(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), x, np.array(i, dtype)))
            assert f"index {i} is out of bounds for axis 0 with size 300" in found


def test_the_index_is_the_first_one_that_is_outside() -> None:
    found = message(lambda x, i: x[i], jnp.arange(3.0), jnp.array([1, 8, 7]))
    assert "primitive gather for array of shape (3,): index 8 " in str(found)


def test_indices_that_are_written_in_the_program_cost_nothing() -> None:
    program = corejax.make_jaxpr(checkify.checkify(lambda x: (x[1], x[1:2]), checkify.index_checks))(jnp.ones(3))
    plain = corejax.make_jaxpr(lambda x: (x[1], x[1:2]))(jnp.ones(3))
    assert len(program.eqns) == len(plain.eqns)


def test_modes_make_no_difference() -> None:
    for mode in ("clip", "fill", "promise_in_bounds"):
        get = lambda x, i, mode=mode: x.at[i].get(mode=mode)
        assert message(get, jnp.ones(3), jnp.array([0, 3])) is not None
        assert message(get, jnp.ones(3), jnp.array([0, 2])) is None


def test_apply_at_places() -> None:
    apply = lambda x, i: x.at[i].apply(jnp.exp)
    assert "index 3 " in str(message(apply, jnp.ones(3), jnp.array([0, 3])))
    assert message(apply, jnp.ones(3), jnp.array([0, 2])) is None
