"""Arrays that go from sharding to sharding: values, memory, and no way round by the host."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.errors import BackendError
from corejax.sharding import Mesh, NamedSharding, Sharding
from corejax.sharding import PartitionSpec as P

DTYPES = [bool, np.int8, np.uint64, np.float16, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


def shardings() -> list[Sharding]:
    """Over all devices, in two orders."""
    devices = np.array(corejax.devices())
    meshes = Mesh(devices.reshape(4, 2), ("x", "y")), Mesh(devices[::-1].reshape(2, 4), ("x", "y"))
    return [NamedSharding(mesh, spec) for mesh in meshes for spec in (P("x", "y"), P("y"), P(None, ("x", "y")), P())]


def check(got: Any, value: np.ndarray[Any, Any], where: Sharding) -> None:
    """All parts, and the whole."""
    assert got.sharding == where and got.dtype == value.dtype and got.shape == value.shape
    for shard in got.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])
    np.testing.assert_array_equal(np.asarray(got), value)


WITHOUT_ELEMENTS = [(shape, dtype) for shape in ((0, 8), (8, 0)) for dtype in (np.complex64, ml_dtypes.int4)]


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize(("shape", "dtype"), [*(((8, 16), d) for d in (*DTYPES, ml_dtypes.int4)), *WITHOUT_ELEMENTS])
def test_from_everywhere_to_everywhere(dtype: Any, shape: tuple[int, ...], part: int) -> None:
    value = (np.arange(np.prod(shape)) % 3 % 2).astype(dtype).reshape(shape)
    x = corejax.device_put(value, shardings()[part])
    for end in shardings():
        check(corejax.device_put(x, end), value, end)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.int4])
def test_by_a_program(dtype: Any) -> None:
    """As between processes, and on devices whose memory is not the host's."""
    from corejax_xla_backend._xla.backend import XLA
    from corejax_xla_backend._xla.resharding import by_program

    value = (np.arange(128) % 5).astype(dtype).reshape(8, 16)
    first, rows, columns, whole, *turned = shardings()
    for start, end in ((first, rows), (rows, columns), (columns, whole), (whole, first), (first, turned[1])):
        x = corejax.device_put(value, start)
        check(corejax.Array(by_program(XLA, x._buf, start, end)), value, end)


def test_nothing_is_copied_where_parts_stay_as_they_are() -> None:
    devices = np.array(corejax.devices())
    one, other = (NamedSharding(Mesh(order, ("x",)), P("x")) for order in (devices, devices[::-1]))
    x = corejax.jit(lambda v: v + 1)(corejax.device_put(np.zeros((64, 64), np.float32), one))
    moved = corejax.device_put(x, other)
    pointers = [[s.data.unsafe_buffer_pointer() for s in y.addressable_shards] for y in (x, moved)]
    assert pointers[0] == pointers[1]
    assert [s.device for s in moved.addressable_shards] == list(devices[::-1])
    copies = corejax.device_put(np.ones((64, 64), np.float32), shardings()[3])
    cut = corejax.device_put(copies, one)
    check(cut, np.ones((64, 64), np.float32), one)


def test_sources_outlive_donation_of_what_was_made_of_them() -> None:
    step = corejax.jit(lambda v: v + 1, donate_argnums=0)
    value = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    for start in shardings():
        for end in shardings():
            x = corejax.jit(lambda v: v * 1)(corejax.device_put(value, start))
            moved = corejax.device_put(x, end)
            if moved is not x:
                np.testing.assert_array_equal(step(moved), value + 1)
                np.testing.assert_array_equal(x, value)
            np.testing.assert_array_equal(step(x), value + 1)


def test_no_transfer_from_the_host() -> None:
    value = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    starts = [corejax.device_put(value, s) for s in shardings()]
    for x in starts:
        for end in shardings():
            with corejax.transfer_guard("disallow_explicit"):
                moved = corejax.reshard(x, end)
                put = corejax.device_put(x, end)
            check(moved, value, end)
            check(put, value, end)
    with (
        corejax.transfer_guard_host_to_device("disallow_explicit"),
        pytest.raises(BackendError, match=r"transfer_guard refuses to put .*\(8, 8\)"),
    ):
        corejax.device_put(value, starts[0].sharding)


def test_to_fewer_and_to_more_devices() -> None:
    value = np.arange(32.0).reshape(8, 4)
    devices = corejax.devices()
    half = NamedSharding(Mesh(np.array(devices[4:]), ("z",)), P("z"))
    for start in shardings()[:4]:
        if value.shape[1] % start.tiles(2).shape[1] == 0:
            x = corejax.device_put(corejax.device_put(value, start), half)
            check(x, value, half)
            check(corejax.device_put(x, start), value, start)
            check(corejax.device_put(corejax.device_put(x, devices[1]), start), value, start)


def test_keys_and_scalars_and_what_does_not_divide() -> None:
    first, rows, _, whole, turned, *_ = shardings()
    keys = corejax.random.split(corejax.random.key(0), 8)
    moved = corejax.device_put(corejax.device_put(keys, rows), whole)
    assert moved.sharding == whole and moved.dtype == keys.dtype
    np.testing.assert_array_equal(corejax.random.key_data(moved), corejax.random.key_data(keys))
    one = corejax.device_put(corejax.device_put(np.float32(3), whole), NamedSharding(turned.mesh, P()))
    assert one.shape == () and float(one) == 3 and len(one.addressable_shards) == 8
    x = corejax.device_put(np.ones((6, 4), np.float32), whole)
    with pytest.raises(ValueError, match=r"device_put: .*axis 0 into 4 parts"):
        corejax.device_put(x, first)
    assert corejax.device_put(x, whole) is x


def test_programs_that_nobody_waits_for() -> None:
    """More of them than CPU devices queue up: the devices of each wait for each other."""
    x = corejax.device_put(np.ones((8, 4), np.float32), shardings()[0])
    total = corejax.jit(lambda v: v / jnp.sum(v) + 1)
    large = corejax.jit(lambda v, w: v + jnp.sum(w @ w.T))
    host = np.ones((8, 16384), np.float32)
    y = z = x
    for _ in range(200):
        y = total(y) * 1.0
        z = z + jnp.sum(z) / 1e9
    for _ in range(50):
        z = large(x, host)
    np.testing.assert_allclose(np.sum(y), 33, rtol=1e-5)
    np.testing.assert_allclose(z, 1 + 64 * 16384)


def test_programs_that_are_waited_for_are_repeated_in_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first result waits, wherever in the result it is."""
    from corejax_xla_backend._xla.executable import XlaExecutable

    runs = []
    run = XlaExecutable.run
    monkeypatch.setattr(XlaExecutable, "run", lambda self, buffers: (runs.append(self.name), run(self, buffers))[1])
    first, *_, whole = shardings()[:4]
    x, key = corejax.device_put(np.ones((8, 4), np.float32), first), corejax.device_put(corejax.random.key(0), whole)

    @corejax.jit
    def f(x: Any, key: Any) -> Any:
        return {"b": (jnp.sum(x), x * 2), "a": [None, corejax.random.split(key)]}

    for _ in range(5):
        out = f(x, key)
        assert out["b"][0]._buf.is_ready() and out["b"][0] == 32.0 and type(out["a"][1]) is corejax.Array
        np.testing.assert_array_equal(out["b"][1], 2 * np.ones((8, 4)))
        assert (out["a"][1] == corejax.random.split(corejax.random.key(0))).all()
    assert runs.count("f") == 2  # the call that traces lets others in, the next one is remembered


def test_branches_whose_results_are_laid_out_differently() -> None:
    """XLA's partitioner refuses them where there is one result."""
    mesh = corejax.make_mesh((2, 4), ("x", "y"))
    x = np.arange(128, dtype=np.float32).reshape(8, 16)

    def programs(place: Any) -> Any:
        def chosen(a: Any) -> Any:
            return lax.cond(a[0, 0] > 1, lambda a: place(a * 2, P("x")), lambda a: place(a / 2, P(None, "y")), a)

        def one_of_three(a: Any, i: Any) -> Any:
            branches = [lambda a, s=s: place(a + len(s), P(*s)) for s in (("y",), (), ("x", "y"))]
            return lax.switch(i, branches, a)

        return lambda a: [
            chosen(a),
            one_of_three(a, (a[0, 1]).astype(int)),
            lax.fori_loop(0, 4, lambda i, c: one_of_three(c, i), a),
            lax.scan(lambda c, y: (chosen(c), chosen(c)[0] + y), a, a),
            corejax.grad(lambda a: jnp.sum(chosen(a) ** 2))(a),
        ]

    expected = corejax.tree.leaves(programs(lambda v, spec: v)(jnp.array(x)))
    run = corejax.jit(programs(lambda v, spec: lax.with_sharding_constraint(v, NamedSharding(mesh, spec))))
    for spec in (P(), P("x", "y"), P(None, "x")):
        found = corejax.tree.leaves(run(corejax.device_put(x, NamedSharding(mesh, spec))))
        for value, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(value), np.asarray(wanted), rtol=1e-5)


def test_explicit_axes_have_an_entry_for_each_dimension() -> None:
    mesh = corejax.make_mesh((4, 2), ("x", "y"), axis_types=(corejax.sharding.AxisType.Explicit,) * 2)
    x = np.zeros((8, 4), np.float32)
    with corejax.set_mesh(mesh):
        for spec, full in ((P("x"), P("x", None)), (P(), P(None, None))):
            assert corejax.sharding.reshard(x, spec).sharding == NamedSharding(mesh, full)
            assert jnp.zeros((8, 4), out_sharding=spec).sharding == NamedSharding(mesh, full)
