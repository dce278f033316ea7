"""Sparse arrays of random shapes, and their comparison."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from corejax.experimental import sparse
from corejax.experimental.sparse import BCOO

few = hypothesis.settings(max_examples=25, deadline=None, derandomize=True)


def dense(shape: tuple[int, ...], dtype: Any = "float32", density: float = 0.4, seed: int = 0) -> Any:
    """An array of which some elements are zero."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 9, shape) * (rng.random(shape) < density)
    return x.astype(dtype)


def check(ours: Any, wanted: Any, rtol: float = 1e-5) -> None:
    ours = ours.todense() if isinstance(ours, sparse.JAXSparse) else ours
    wanted = wanted.todense() if hasattr(wanted, "todense") else wanted
    assert ours.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(ours), np.asarray(wanted), rtol=rtol, atol=1e-6)


@st.composite
def arrays(draw: Any, max_batch: int = 2, max_dense: int = 2, min_sparse: int = 0, unique: bool = False) -> Any:
    """A BCOO array, perhaps with duplicates, padding and sizes of zero, and jax's."""
    js = pytest.importorskip("jax.experimental.sparse")
    sizes = st.integers(0, 4)
    batch, tail = (draw(st.lists(sizes, max_size=n)) for n in (max_batch, max_dense))
    sparse_shape = draw(st.lists(sizes, min_size=min_sparse, max_size=3))
    nse, seed = draw(st.integers(0, 5)), draw(st.integers(0, 99))
    rng, shape = np.random.default_rng(seed), (*batch, *sparse_shape, *tail)
    if unique:
        x = dense(shape, seed=seed)
        mine = BCOO.fromdense(x, n_batch=len(batch), n_dense=len(tail))
        return mine, js.BCOO((mine.data, mine.indices), shape=shape, unique_indices=True)
    indices = np.stack([rng.integers(0, n + 2, (*batch, nse)) for n in sparse_shape], -1) if sparse_shape else None
    indices = np.zeros((*batch, nse, 0), "int32") if indices is None else indices.astype("int32")
    data = rng.integers(-4, 5, (*batch, nse, *tail)).astype("float32")
    return BCOO((data, indices), shape=shape), js.BCOO((data, indices), shape=shape)
