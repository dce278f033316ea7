"""`buffer_callback`: a Python function writes its results into buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.experimental.buffer_callback import Buffer, ExecutionStage, buffer_callback

TYPE = corejax.ShapeDtypeStruct((3,), np.float32)


def add_one(context: Any, out: Any, x: Any) -> None:
    assert context.stage is ExecutionStage.EXECUTE
    assert (out.dtype, out.ndim) == (np.float32, x.ndim)
    assert out.writeable and not x.writeable
    np.asarray(out)[...] = np.asarray(x) + 1


@pytest.mark.parametrize("jit", [False, True])
def test_results_are_what_is_written(jit: bool) -> None:
    f = buffer_callback(add_one, TYPE)
    x = jnp.arange(3.0)
    np.testing.assert_array_equal((corejax.jit(f) if jit else f)(x), [1, 2, 3])
    np.testing.assert_array_equal(x, [0, 1, 2])


def test_pytrees() -> None:
    def callback(context: Any, out: Any, xs: Any, *, scale: Any) -> None:
        np.asarray(out["sum"])[...] = sum(map(np.asarray, xs))
        np.asarray(out["product"])[...] = np.asarray(xs[0]) * np.asarray(scale)

    f = corejax.jit(buffer_callback(callback, {"sum": TYPE, "product": TYPE}))
    out = f((jnp.arange(3.0), jnp.ones(3)), scale=2.0)
    np.testing.assert_array_equal(out["sum"], [1, 2, 3])
    np.testing.assert_array_equal(out["product"], [0, 2, 4])


@pytest.mark.parametrize("jit", [False, True])
def test_aliases(jit: bool) -> None:
    def write(context: Any, out: Any, x: Any, y: Any) -> None:
        np.asarray(out)[1] = 7.0

    f = buffer_callback(write, TYPE, input_output_aliases={1: 0})
    x, y = jnp.zeros(2), jnp.arange(3.0)
    np.testing.assert_array_equal((corejax.jit(f) if jit else f)(x, y), [0, 7, 2])
    np.testing.assert_array_equal(y, [0, 1, 2])


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap(method: str) -> None:
    f = corejax.vmap(buffer_callback(add_one, TYPE, vmap_method=method))
    np.testing.assert_array_equal(f(jnp.arange(6.0).reshape(2, 3)), [[1, 2, 3], [4, 5, 6]])


def test_side_effects_happen_once_for_each_call() -> None:
    calls = []

    def callback(context: Any, out: Any, x: Any) -> None:
        calls.append(float(np.asarray(x)[0]))

    f = buffer_callback(callback, TYPE, has_side_effect=True)
    corejax.jit(lambda x: (f(x), x)[1])(jnp.arange(3.0))
    corejax.vmap(f)(jnp.ones((2, 3)))
    corejax.effects_barrier()
    assert calls == [0, 1, 1]


def test_buffers() -> None:
    buffer = Buffer(np.arange(3.0), writeable=False)
    assert repr(buffer) == "Buffer(float64[3])"
    assert np.shares_memory(buffer._array, np.asarray(buffer)) and buffer.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(Buffer(np.arange(3.0), writeable=True)), [0, 1, 2])
    assert np.asarray(buffer, "int32").dtype == "int32"
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(buffer)[0] = 1
    with pytest.raises(ValueError, match="no view of dtype int32"):
        buffer.__array__("int32", copy=False)


def test_what_is_refused() -> None:
    x = jnp.arange(3.0)
    with pytest.raises(ValueError, match="returns None, got 1"):
        buffer_callback(lambda *args: 1, TYPE)(x)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="has 2: 0, but there are 1 arguments and 1 results"):
        buffer_callback(add_one, TYPE, input_output_aliases={2: 0})(x)
    with pytest.raises(ValueError, match=r"has 0: 0, but the argument has the type float32\[2\]"):
        buffer_callback(add_one, TYPE, input_output_aliases={0: 0})(x[:2])
    with pytest.raises(ValueError, match="has no stream"):
        buffer_callback(lambda context, out, x: context.stream, TYPE)(x)
    with pytest.raises(corejax.errors.NotDifferentiableError):
        corejax.grad(lambda x: buffer_callback(add_one, TYPE)(x).sum())(x)
