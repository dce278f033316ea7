"""`bcoo_gather` and `bcoo_conv_general_dilated` beside the functions of dense arrays."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.experimental import sparse
from corejax.experimental.sparse import BCOO
from tests.sparse.samples import check, dense, few

Numbers = lax.GatherDimensionNumbers

# the shape of the operand, its positions, dimension numbers, sizes of slices
GATHERS: list[Any] = [
    ((5,), [[1], [3], [0]], Numbers((), (0,), (0,)), (1,)),
    ((5,), [[1], [4]], Numbers((1,), (), (0,)), (3,)),
    ((5, 4), [[1, 2], [4, 0]], Numbers((1, 2), (), (0, 1)), (2, 3)),
    ((5, 4), [[0], [2], [9]], Numbers((1,), (0,), (0,)), (1, 4)),
    ((5, 4), [[0], [2], [3]], Numbers((0,), (1,), (1,)), (5, 1)),
    ((5, 4), [1], Numbers((0,), (0,), (0,)), (1, 4)),
    ((3, 5, 4), [[[1, 0]], [[2, 2]]], Numbers((2, 3), (2,), (2, 0)), (1, 5, 1)),
]


@pytest.mark.parametrize(("shape", "start", "numbers", "sizes"), GATHERS)
@pytest.mark.parametrize("n_batch", [0, 1])
def test_gather(shape: Any, start: Any, numbers: Any, sizes: Any, n_batch: int) -> None:
    x, start = dense(shape, seed=6), jnp.array(start)
    mat = BCOO.fromdense(x, n_batch=min(n_batch, len(shape) - 1))
    wanted = lax.gather(x, start, numbers, sizes, mode="clip")
    check(sparse.bcoo_gather(mat, start, numbers, sizes), wanted)
    compiled = corejax.jit(lambda mat, start: sparse.bcoo_gather(mat, start, numbers, sizes))
    check(compiled(mat, start), wanted)


def test_gather_beside_jaxs() -> None:
    jax, js = pytest.importorskip("jax"), pytest.importorskip("jax.experimental.sparse")
    x = dense((5, 4), seed=6)
    start, sizes = np.array([[1, 2], [3, 0]]), (2, 3)
    theirs = js.bcoo_gather(
        js.BCOO.fromdense(x), jax.numpy.asarray(start), jax.lax.GatherDimensionNumbers((1, 2), (), (0, 1)), sizes
    )
    check(sparse.bcoo_gather(BCOO.fromdense(x), start, Numbers((1, 2), (), (0, 1)), sizes), theirs)


def test_what_gather_refuses() -> None:
    mat = BCOO.fromdense(dense((5, 4)))
    with pytest.raises(NotImplementedError, match="mode must be 'promise_in_bounds', got 'fill'"):
        sparse.bcoo_gather(mat, jnp.array([[0]]), Numbers((1,), (0,), (0,)), (1, 4), mode="fill")
    with pytest.raises(NotImplementedError, match="batching dimensions"):
        sparse.bcoo_gather(mat, jnp.zeros((5, 1), int), Numbers((), (1,), (1,), (0,), (0,)), (1, 1))
    with pytest.raises((ValueError, TypeError)):
        sparse.bcoo_gather(mat, jnp.array([[0]]), Numbers((1,), (0,), (0,)), (2, 4))


@few
@hypothesis.given(
    st.integers(1, 8),
    st.integers(1, 4),
    st.sampled_from(["SAME", "VALID", ((1, 2),), ((0, 0),), ((-1, 1),), ((3, 0),)]),
)
def test_convolution(n: int, k: int, padding: Any) -> None:
    x, y = dense((1, 1, n), seed=n), dense((1, 1, k), density=0.8, seed=k)
    hypothesis.assume(n >= k and (isinstance(padding, str) or n + sum(padding[0]) >= k))
    wanted = lax.conv_general_dilated(x, y, (1,), padding)
    for lhs, rhs in (
        (BCOO.fromdense(x), BCOO.fromdense(y)),
        (BCOO.fromdense(x, nse=n + 1), y),
        (jnp.asarray(x), BCOO.fromdense(y, n_batch=2)),
    ):
        out = sparse.bcoo_conv_general_dilated(lhs, rhs, window_strides=(1,), padding=padding)
        assert isinstance(out, BCOO)
        check(out, wanted)


def test_what_convolution_refuses() -> None:
    x = BCOO.fromdense(dense((1, 1, 5)))
    options: list[dict[str, Any]] = [
        {"window_strides": (2,)}, {"lhs_dilation": (2,)}, {"rhs_dilation": (3,)}, {"feature_group_count": 2},
        {"batch_group_count": 2}, {"dimension_numbers": ("NWC", "WIO", "NWC")}, {"out_sharding": object()},
    ]  # fmt: skip
    for more in options:
        with pytest.raises(NotImplementedError, match="bcoo_conv_general_dilated"):
            sparse.bcoo_conv_general_dilated(x, x, **({"window_strides": (1,), "padding": "SAME"} | more))
    with pytest.raises(NotImplementedError, match=r"the shapes must be \(1, 1, size\)"):
        sparse.bcoo_conv_general_dilated(BCOO.fromdense(jnp.ones((1, 2, 5))), x, window_strides=(1,), padding="SAME")
    with pytest.raises(TypeError, match="one dtype"):
        sparse.bcoo_conv_general_dilated(x.astype("int32"), x, window_strides=(1,), padding="SAME")
