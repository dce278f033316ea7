"""`ds`: blocks of known size at positions that may be traced, in indices of arrays and references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import ds

X = np.arange(60.0, dtype="float32").reshape(3, 5, 4)

# an index with a block from `i` on, and the same index of NumPy if `i` is in bounds
INDICES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "one": lambda i: (ds(i, 2), slice(i, i + 2)),
    "two": lambda i: ((slice(None), ds(i, 3), ds(1, 2)), (slice(None), slice(i, i + 3), slice(1, 3))),
    "integers": lambda i: ((1, ds(i, 2), -1), (1, slice(i, i + 2), -1)),
    "new axes": lambda i: ((None, ds(i, 2), None, 3), (None, slice(i, i + 2), None, 3)),
    "ellipsis": lambda i: ((..., ds(i, 1)), (..., slice(i, i + 1))),
    "arrays": lambda i: (([0, 2], ds(i, 2), [1, 3]), ([0, 2], slice(i, i + 2), [1, 3])),
    "empty": lambda i: ((0, ds(i, 0)), (0, slice(i, i))),
    "all": lambda i: ((ds(3), ds(i, 4)), (slice(None), slice(i, i + 4))),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("i", [0, 1])
def test_reads_and_writes(name: str, i: int) -> None:
    index = INDICES[name]
    wanted = X[index(i)[1]]

    def written(x: Any) -> Any:
        x = x.copy()
        x[index(i)[1]] = -1
        return x

    x = jnp.asarray(X)
    np.testing.assert_array_equal(x[index(i)[0]], wanted)
    np.testing.assert_array_equal(corejax.jit(lambda i: x[index(i)[0]])(i), wanted)
    np.testing.assert_array_equal(x.at[index(i)[0]].set(-1), written(X))
    np.testing.assert_array_equal(corejax.jit(lambda x, i: x.at[index(i)[0]].set(-1))(X, i), written(X))
    np.testing.assert_array_equal(corejax.jit(lambda x, i: x.at[index(i)[0]].get())(X, i), wanted)
    ref = corejax.new_ref(x)

    @corejax.jit
    def through_a_reference(i: Any) -> Any:
        part = ref[index(i)[0]]
        ref[index(i)[0]] = part * 0 - 1
        return part

    np.testing.assert_array_equal(through_a_reference(i), wanted)
    np.testing.assert_array_equal(ref[...], written(X))


@pytest.mark.parametrize("i", [-7, -2, 3, 9])
def test_starts_out_of_bounds_are_those_of_dynamic_slice(i: int) -> None:
    x = jnp.arange(5)
    wanted = corejax.lax.dynamic_slice(x, (i,), (3,))
    np.testing.assert_array_equal(x[ds(i, 3)], wanted)
    np.testing.assert_array_equal(corejax.jit(lambda i: x[ds(i, 3)])(i), wanted)
    changed = corejax.lax.dynamic_update_slice(x, jnp.full(3, 9), (i,))
    np.testing.assert_array_equal(x.at[ds(i, 3)].set(9), changed)
    np.testing.assert_array_equal(corejax.jit(lambda i: x.at[ds(i, 3)].add(9 - x[ds(i, 3)]))(i), changed)


def test_strides_and_transformations() -> None:
    x = jnp.arange(8.0)
    np.testing.assert_array_equal(x[ds(1, 3, 2)], [1, 3, 5])
    np.testing.assert_array_equal(x[ds(jnp.int32(1), 3, stride=2)], [1, 3, 5])
    np.testing.assert_array_equal(corejax.vmap(lambda i: x[ds(i, 2)])(jnp.arange(3)), [[0, 1], [1, 2], [2, 3]])
    gradient = corejax.grad(lambda x, i: (x[ds(i, 2)] ** 2).sum())(x, 3)
    np.testing.assert_array_equal(gradient, [0, 0, 0, 6, 8, 0, 0, 0])
    block = ds(jnp.int32(2), 3)
    np.testing.assert_array_equal(corejax.jit(lambda x, block: x[block])(x, block), [2, 3, 4])
    np.testing.assert_array_equal(corejax.jit(lambda x, block: x[block])(x, ds(2, 3)), [2, 3, 4])


def test_beside_jax() -> None:
    jax = pytest.importorskip("jax")
    ours, theirs = ds(2, 3), jax.ds(2, 3)
    assert repr(ours) == repr(theirs)
    names = {n for n in dir(theirs) if not n.startswith("_")} - {"from_slice"}
    assert names <= set(dir(ours))
    assert (ds(4).start, ds(4).size) == (jax.ds(4).start, jax.ds(4).size)
    ref, other = corejax.new_ref(jnp.arange(10)), jax.new_ref(jax.numpy.arange(10))
    for i in (2, 9):
        wanted = jax.jit(lambda i: other[jax.ds(i, 3)])(i)
        np.testing.assert_array_equal(corejax.jit(lambda i: ref[ds(i, 3)])(i), np.asarray(wanted))


def test_what_is_refused() -> None:
    x = jnp.arange(5)
    calls: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (TypeError, "size and stride must be integers", lambda: ds(0, 2.5)),  # type: ignore[arg-type]
        (TypeError, "start must be an integer scalar", lambda: ds(jnp.ones(()), 2)),
        (TypeError, "start must be an integer scalar", lambda: ds(jnp.arange(2), 2)),
        (ValueError, "size must be 0 or more", lambda: ds(0, -1)),
        (ValueError, "stride 1 or more", lambda: ds(0, 1, 0)),
        (IndexError, "a block of 6 elements does not fit into axis 0, which has size 5", lambda: x[ds(0, 6)]),
        (IndexError, "a block of 7 elements", lambda: x.at[ds(0, 4, 2)].set(0)),
        (NotImplementedError, "a traced start with stride 2", lambda: corejax.jit(lambda i: x[ds(i, 2, 2)])(0)),
    ]
    for error, text, call in calls:
        with pytest.raises(error, match=text):
            call()
