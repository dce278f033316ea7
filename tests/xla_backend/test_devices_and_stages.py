"""Devices and the steps of compilation: what users can look at and hold."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
from corejax import Array, ShapeDtypeStruct, jit, lax
from corejax.errors import TracerArrayConversionError

pytest.importorskip("jaxlib")


def f(x: Any, y: Any) -> Any:
    return {"out": lax.sin(x) * y}


X = np.float32([1, 2, 3])


# -- stages ----------------------------------------------------------------------------------------


def test_lowered_text() -> None:
    lowered = jit(f).lower(X, 2.0)
    text = lowered.as_text()
    assert text.startswith("module @jit_f") and "stablehlo.sine" in text and "func.func public @main" in text
    assert '"stablehlo.sine"' in lowered.as_text(pretty=False)
    assert str(lowered.in_tree).count("*") == 2 and str(lowered.jaxpr.out_avals[0]) == "float32[3]"


def test_lowering_takes_types_for_values() -> None:
    text = jit(f).lower(ShapeDtypeStruct((3,), np.float32), ShapeDtypeStruct((), np.float32, weak_type=True)).as_text()
    assert text == jit(f).lower(X, 2.0).as_text()


def test_compiled_functions_run() -> None:
    compiled = jit(f).lower(X, 2.0).compile()
    np.testing.assert_allclose(compiled(X, 3.0)["out"], 3 * np.sin(X), rtol=1e-6)
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis()["argument"] >= 12
    for args, message in (
        ((X,), "structure"),
        ((X[:2], 3.0), r"f32\[3\] as argument x, got f32\[2\]"),
        ((X, 3), "argument y"),
    ):
        with pytest.raises(TypeError, match=message):
            compiled(*args)


def test_compiled_functions_hold_their_constants_and_static_arguments() -> None:
    table = lax.sin(X)
    g = jit(lambda x, n: x * n + table, static_argnums=1)
    compiled = g.lower(X, 3).compile()
    np.testing.assert_allclose(compiled(X), X * 3 + np.sin(X), rtol=1e-6)


def test_unused_arguments_are_not_passed() -> None:
    g = jit(lambda x, unused: x + 1)
    assert "tensor<100xf32>" not in g.lower(X, np.zeros(100, np.float32)).as_text()
    for _ in range(2):
        np.testing.assert_array_equal(g(X, np.zeros(100, np.float32)), X + 1)


def test_eval_shape() -> None:
    out = jit(f).eval_shape(X, 2.0)
    assert repr(out["out"]) == "ShapeDtypeStruct(shape=(3,), dtype=float32)"


# -- devices ---------------------------------------------------------------------------------------


def test_devices() -> None:
    device = corejax.devices()[0]
    assert corejax.default_backend() == device.platform
    assert corejax.devices("cpu")[0].platform == "cpu"
    assert jit(lambda x: x)(X).devices() == {device}


def test_device_put_and_get() -> None:
    tree = corejax.device_put({"a": X, "b": [1.0, (2, None)]})
    assert all(type(x) is Array for x in (tree["a"], tree["b"][0], tree["b"][1][0]))
    assert tree["a"].devices() == {corejax.devices()[0]}
    assert tree["b"][0].weak_type and tree["b"][1][0].dtype == np.int32
    back = corejax.device_get(tree)
    assert type(back["a"]) is np.ndarray
    np.testing.assert_array_equal(back["a"], X)
    on_cpu = corejax.device_put(tree["a"], corejax.devices("cpu")[0])
    np.testing.assert_array_equal(on_cpu, X)
    assert on_cpu.devices() == {corejax.devices("cpu")[0]}


def test_device_put_copies() -> None:
    mutable = np.zeros(1 << 10, np.float32)
    put = corejax.device_put(mutable)
    mutable[:] = 1
    assert float(put[0]) == 0.0


def test_device_put_under_a_transformation_is_the_identity() -> None:
    assert float(corejax.grad(lambda x: corejax.device_put(x) * 3)(1.0)) == 3.0
    assert float(jit(lambda x: corejax.device_put(x) * 3)(1.0)) == 3.0
    with pytest.raises(TracerArrayConversionError):
        jit(lambda x: np.asarray(corejax.device_get(x)))(1.0)


def test_block_until_ready() -> None:
    y = jit(lambda x: lax.sin(x))(X)
    assert y.block_until_ready() is y
    tree = {"a": y, "b": 3}
    assert corejax.block_until_ready(tree) is tree


def test_arrays_move_only_when_read() -> None:
    y = jit(lambda x: x + 1)(X)
    z = jit(lambda x: x * 2)(y)
    assert y._host is None and z._host is None
    np.testing.assert_array_equal(z, (X + 1) * 2)
    assert y._host is None
    view = np.asarray(z)
    assert not view.flags.writeable and np.shares_memory(view, np.asarray(z))


def test_reading_the_value_first_does_not_lose_the_weak_type() -> None:
    for look in (repr, str, float, np.asarray):
        y = jit(lambda x: -x)(1)
        look(y)
        assert y.weak_type and y.aval is y._buf.aval


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.int4], ids=lambda d: np.dtype(d).name
)
def test_small_types_come_back_as_read_only_arrays(dtype: Any) -> None:
    value = np.arange(6).reshape(2, 3).astype(dtype)
    y = np.asarray(jit(lambda x: x)(value))
    assert y.dtype == value.dtype and not y.flags.writeable
    np.testing.assert_array_equal(y, value)


ROUND_TRIPS = """
import sys
import ml_dtypes, numpy as np
from corejax import jit
for name in ("bfloat16", "int4", "uint2", "float8_e4m3fn", "float4_e2m1fn", "float32", "bool", "complex64"):
    dtype = getattr(ml_dtypes, name, None) or getattr(np, name)
    for shape in ((), (2, 3), (0,)):
        value = np.ones(shape, np.float32).astype(dtype)
        out = np.asarray(jit(lambda x: x)(value))
        assert out.dtype == value.dtype and out.tobytes() == value.tobytes(), name
        repr(jit(lambda x: x)(value)), str(jit(lambda x: x)(value))
assert "jax" not in sys.modules, "jax was imported"
"""


def test_nothing_imports_jax_not_even_reading_small_types() -> None:
    subprocess.run([sys.executable, "-c", ROUND_TRIPS], check=True)


def test_types_for_annotations() -> None:
    assert isinstance(corejax.devices()[0], corejax.Device)
    (shard,) = corejax.jit(lambda x: x + 1)(np.float32([1, 2])).addressable_shards
    assert isinstance(shard, corejax.Shard)
    assert {"trace", "lower", "__call__"} <= set(vars(corejax.stages.Wrapped))
    f = corejax.jit(lambda x: x)
    assert all(callable(getattr(f, name)) for name in ("trace", "lower"))


def test_waiting_for_a_pytree() -> None:
    """On the host, on the device, in containers and among other values; not for what is deleted."""
    two = corejax.jit(lambda x: (x + 1, x * 2))(np.ones(3, np.float32))
    assert corejax.block_until_ready(two) is two
    mixed = {"a": [two[0], corejax.numpy.ones(2), None, 3.0], "b": two}
    assert corejax.block_until_ready(mixed) is mixed
    assert corejax.block_until_ready(()) == () and corejax.block_until_ready(2.0) == 2.0
    two[1].delete()
    for deleted in (two, two[1], [two[1]], mixed, (corejax.numpy.ones(2), two[1])):
        with pytest.raises(RuntimeError, match=r"deleted at .*test_devices_and_stages.py"):
            corejax.block_until_ready(deleted)


def test_structures_like_arrays() -> None:
    x = corejax.device_put(np.ones((2, 3), np.int8), corejax.devices()[0])
    assert corejax.ShapeDtypeStruct.like(x) == corejax.ShapeDtypeStruct((2, 3), np.int8, sharding=x.sharding)
    free = corejax.ShapeDtypeStruct((), np.float32, weak_type=True)
    for y in (2.0, corejax.numpy.asarray(2.0), corejax.typeof(2.0), free):
        assert corejax.ShapeDtypeStruct.like(y) == free
