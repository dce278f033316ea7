"""Segment reductions, and pytrees as vectors, against jax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.flatten_util
import corejax.ops

jax = pytest.importorskip("jax")
jax_flatten_util = pytest.importorskip("jax.flatten_util")

IDS = np.array([0, 2, 2, -1, 7, 1], np.int32)
OPTIONS: list[dict[str, Any]] = [
    {"num_segments": 4},
    {"num_segments": 4, "mode": "clip"},
    {},
    {"num_segments": 4, "bucket_size": 2},
    {"num_segments": 0},
]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_segments(name: str, dtype: Any) -> None:
    if dtype is bool and name in ("sum", "prod"):
        pytest.skip("booleans are not added")
    data = (np.random.default_rng(0).normal(size=(6, 2)) * 3).astype(dtype)
    for options in OPTIONS[:3] + OPTIONS[4:] if dtype is bool else OPTIONS:
        ours = getattr(corejax.ops, f"segment_{name}")(data, IDS, **options)
        theirs = getattr(jax.ops, f"segment_{name}")(data, IDS, **options)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=str(options))


@pytest.mark.parametrize("data", [2.0, np.full((1,), 2.0, "f4"), np.arange(3.0, dtype="f4")[None]], ids=np.shape)
def test_one_part_counts_for_every_id(data: Any) -> None:
    for options in OPTIONS:
        ours = corejax.ops.segment_sum(data, IDS, **options)
        theirs = jax.ops.segment_sum(data, IDS, **options)
        assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)
        np.testing.assert_array_equal(ours, theirs)
    of_one = lambda ops: lambda x: (ops.segment_sum(x, IDS, 4) ** 2).sum()
    np.testing.assert_allclose(corejax.grad(of_one(corejax.ops))(data), jax.grad(of_one(jax.ops))(data))


def test_derivative_and_batches() -> None:
    data = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    loss = lambda ops: lambda x, ids: (ops.segment_sum(x, ids, 4) ** 2 + ops.segment_max(x, ids % 4, 4)).sum()
    expected = jax.grad(loss(jax.ops))(data, IDS)
    np.testing.assert_allclose(corejax.jit(corejax.grad(loss(corejax.ops)))(data, IDS), expected, rtol=1e-5)
    out = corejax.vmap(corejax.grad(loss(corejax.ops)))(np.stack([data] * 2), np.stack([IDS, IDS]))
    np.testing.assert_allclose(out[1], expected, rtol=1e-5)


def test_errors() -> None:
    x = np.ones((3, 2), np.float32)
    with pytest.raises(TypeError, match=r"segment_ids are integers, got f32\[3,2\]"):
        corejax.ops.segment_sum(x, x)
    with pytest.raises(ValueError, match=r"segment_ids i64\[2\] do not match data f32\[3,2\]"):
        corejax.ops.segment_sum(x, np.array([0, 1]))
    with pytest.raises(ValueError, match="num_segments is not negative, got -1"):
        corejax.ops.segment_sum(x, np.array([0, 1, 2]), -1)
    with pytest.raises(TypeError, match="argument i"):
        corejax.make_jaxpr(lambda i: corejax.ops.segment_sum(x, i))(np.array([0, 1, 2]))


def test_ravel_pytree() -> None:
    tree = {"a": np.ones((2, 3), np.float32), "b": (np.arange(3, dtype=np.int32), 2.0), "c": []}
    ours, back = corejax.flatten_util.ravel_pytree(tree)
    theirs, _ = jax_flatten_util.ravel_pytree(tree)
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == theirs.dtype
    again = back(ours)
    assert corejax.tree.structure(again) == corejax.tree.structure(tree)
    assert again["b"][0].dtype == np.int32
    assert corejax.flatten_util.ravel_pytree([])[0].shape == (0,)
    gradient = corejax.grad(lambda v: (back(v)["a"] ** 2).sum())(ours)
    np.testing.assert_array_equal(gradient, [2.0] * 6 + [0.0] * 4)
    with pytest.raises(ValueError, match=r"a vector of 10 elements, got f32\[9\]"):
        back(ours[:9])
    with pytest.raises(TypeError, match=r"a vector of dtype float32, got i32\[10\]"):
        back(ours.astype("int32"))


def test_leaves_of_one_dtype_take_that_of_the_vector() -> None:
    flat, back = corejax.flatten_util.ravel_pytree([np.ones(2, np.float32), np.float32(3)])
    for dtype in ("bfloat16", "int32", "complex64"):
        vector, number = back(flat.astype(dtype))
        assert vector.dtype == number.dtype == dtype and number == 3


def test_traced_ids_need_a_number_of_segments():
    with pytest.raises(corejax.errors.ConcretizationTypeError) as info:
        corejax.jit(corejax.ops.segment_sum)(np.ones(4), np.array([0, 0, 2, 2]))
    assert "segment_sum: give num_segments" in info.value.__notes__[0]
