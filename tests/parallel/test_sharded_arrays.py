"""Arrays over several devices: where they are, what eager operations do with them, how they are made of parts."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from corejax.sharding import PartitionSpec as P

VALUE = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture
def mesh() -> Mesh:
    return corejax.make_mesh((4, 2), ("a", "b"))


@pytest.fixture
def x(mesh: Mesh) -> Any:
    return corejax.device_put(VALUE, NamedSharding(mesh, P("a", "b")))


def test_an_array_says_where_it_is(mesh: Mesh, x: Any) -> None:
    jax = pytest.importorskip("jax")
    assert x.sharding == NamedSharding(mesh, P("a", "b")) == x.device and x.devices() == set(corejax.devices())
    assert x.is_fully_addressable and not x.is_fully_replicated and x.committed and x.platform() == "cpu"
    theirs = jax.device_put(VALUE, jax.sharding.NamedSharding(jax.make_mesh((4, 2), ("a", "b")), jax.P("a", "b")))
    for ours, other in zip(x.addressable_shards, theirs.addressable_shards, strict=True):
        assert (ours.device.id, ours.index, ours.replica_id) == (other.device.id, other.index, other.replica_id)
        np.testing.assert_array_equal(ours.data, other.data)
        assert ours.data.devices() == {ours.device} and ours.data.sharding == SingleDeviceSharding(ours.device)
    assert len(x.global_shards) == 8 and x.addressable_data(3).shape == (2, 2)
    np.testing.assert_array_equal(x.addressable_shards[0].data + 1, VALUE[:2, :2] + 1)
    assert repr(x) == repr(corejax.device_put(VALUE)) and x.tolist() == VALUE.tolist()
    assert x.is_ready() and x.block_until_ready() is x and x.on_device_size_in_bytes() == VALUE.nbytes
    with pytest.raises(ValueError, match=r"addressable_data\(i\)"):
        x.unsafe_buffer_pointer()


def test_replicas_are_numbered(mesh: Mesh) -> None:
    x = corejax.device_put(VALUE, NamedSharding(mesh, P("b")))
    assert [shard.replica_id for shard in x.addressable_shards] == [0, 0, 1, 1, 2, 2, 3, 3]
    whole = corejax.device_put(VALUE, NamedSharding(mesh, P()))
    assert whole.is_fully_replicated and [s.replica_id for s in whole.addressable_shards] == list(range(8))


DTYPES = [bool, np.int8, np.uint64, np.float16, np.float64, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


@pytest.mark.parametrize("size", [8, 80_000])
def test_a_callback_may_use_its_memory_again(mesh: Mesh, size: int) -> None:
    value = np.arange(size, dtype=np.float32)
    sharding = NamedSharding(mesh, P(("a", "b")))
    room, given = np.empty(size // 8, np.float32), []

    def in_the_same_room(index: Any) -> Any:
        room[:] = value[index]
        return room

    def and_keeps_it(index: Any) -> Any:
        given.append(value[index].copy())
        return given[-1]

    made = corejax.make_array_from_callback((size,), sharding, in_the_same_room)
    np.testing.assert_array_equal(made, value)
    kept = corejax.make_array_from_callback((size,), sharding, and_keeps_it)
    for part in given:
        part[:] = -1
    np.testing.assert_array_equal(kept, value)
    zeros = np.zeros(size // 8)
    np.testing.assert_array_equal(
        corejax.make_array_from_callback((size,), sharding, lambda index: zeros), np.zeros(size)
    )


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.int4])
def test_values_come_back(mesh: Mesh, dtype: Any) -> None:
    value = (np.arange(48).reshape(4, 2, 6) % 2).astype(dtype)
    for spec in (P("a", "b"), P(), P(None, None, "b"), P(("b",), ("a",)[:0])):
        y = corejax.device_put(value, NamedSharding(mesh, spec))
        assert y.dtype == value.dtype
        np.testing.assert_array_equal(np.asarray(y), value)


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (8, 0)])
def test_empty_arrays_and_scalars(mesh: Mesh, shape: tuple[int, ...]) -> None:
    spec = P("a") if shape else P()
    y = corejax.device_put(np.ones(shape, np.float32), NamedSharding(mesh, spec))
    assert y.shape == shape and np.asarray(y + 1).shape == shape and len((y + 1).addressable_shards) == 8


@pytest.mark.parametrize("spec", [P("a", "b"), P(None, "a"), P()])
def test_a_copy_stays_where_it_is_when_the_array_is_donated(mesh: Mesh, spec: P) -> None:
    double = corejax.jit(lambda x: x * 2, donate_argnums=0)
    for made in (lambda x: x.copy(), jnp.copy, jnp.array, copy.deepcopy):
        y = corejax.device_put(VALUE, NamedSharding(mesh, spec)) + 0
        own = made(y)
        np.testing.assert_array_equal(double(y), 2 * VALUE)
        np.testing.assert_array_equal(own, VALUE)
        assert own.sharding.is_equivalent_to(NamedSharding(mesh, spec), 2) and not own.is_deleted()
    bound = corejax.device_put(VALUE, corejax.devices()[3])
    assert jnp.copy(bound).devices() == {corejax.devices()[3]}


LARGE = np.arange(2**18, dtype=np.float32).reshape(1024, 256)
VIEWS: dict[str, Any] = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, ::-1],
    "every other": lambda x: x[::2, ::2],
    "16 bits": lambda x: (x % 99).astype(np.float16)[:, ::2],
    "bits": lambda x: x % 3 == 0,
}


@pytest.mark.sampled
@pytest.mark.parametrize("spec", [P("a"), P(("a", "b")), P("a", "b"), P(None, "a"), P(None, ("a", "b")), P()])
@pytest.mark.parametrize("view", VIEWS)
def test_views_and_memory_of_others(mesh: Mesh, view: str, spec: P) -> None:
    double = corejax.jit(lambda x: x + x, in_shardings=NamedSharding(mesh, spec))
    for value in (VALUE, np.tile(VALUE, (1, 2)), LARGE):
        if not all(n % 8 == 0 for n in VIEWS[view](value).shape):
            continue
        own = VIEWS[view](value.copy())
        wanted = own.copy()
        y, z = corejax.device_put(own, NamedSharding(mesh, spec)), double(own)
        own[...] = 0  # the array's memory is its own
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(z, wanted + wanted)


def test_device_put_moves(mesh: Mesh, x: Any) -> None:
    rows, here = NamedSharding(mesh, P("b")), corejax.devices()[3]
    np.testing.assert_array_equal(corejax.device_put(x, rows), VALUE)
    assert corejax.device_put(x, rows).sharding == rows and corejax.device_put(x, x.sharding) is x
    alone = corejax.device_put(x, here)
    assert alone.devices() == {here} and corejax.device_put(alone, rows).sharding == rows
    tree = corejax.device_put({"w": VALUE, "b": np.ones(3)}, {"w": rows, "b": here})
    assert tree["w"].sharding == rows and tree["b"].devices() == {here}
    with corejax.set_mesh(mesh):
        assert corejax.device_put(VALUE, P("b")).sharding == rows
    assert corejax.device_put(x).sharding == x.sharding
    small = corejax.make_mesh((2,), ("z",), devices=corejax.devices()[4:])
    assert corejax.device_put(x, NamedSharding(small, P("z"))).devices() == set(corejax.devices()[4:6])
    gone = corejax.device_put(VALUE, rows)
    corejax.device_put(gone, x.sharding, donate=True)
    assert gone.is_deleted()


def test_eager_operations_stay_where_arrays_are(mesh: Mesh, x: Any) -> None:
    for _ in range(2):  # the value on the host, once read, changes nothing
        y = jnp.sin(x) * 2 + np.ones((8, 4), np.float32)
        assert y.sharding.is_equivalent_to(x.sharding, 2)
        np.testing.assert_allclose(y, np.sin(VALUE) * 2 + 1, rtol=1e-5)
    assert x[0].devices() == x.devices() and x.sum().is_fully_replicated
    np.testing.assert_array_equal(x[2:4, 1], VALUE[2:4, 1])
    np.testing.assert_allclose(x @ x.T, VALUE @ VALUE.T)
    assert (x @ x.T).sharding == NamedSharding(mesh, P("a"))
    np.testing.assert_array_equal(jnp.where(x > 3, x, 0), np.where(VALUE > 3, VALUE, 0))
    np.testing.assert_array_equal(jnp.sort(x, axis=0)[::-1], VALUE[::-1])
    assert [float(row.sum()) for row in x] == VALUE.sum(1).tolist() and float(x.mean()) == VALUE.mean()
    grads = corejax.grad(lambda v: (jnp.tanh(v) ** 2).sum())(x / 10)
    t = np.tanh(VALUE / 10)
    np.testing.assert_allclose(grads, 2 * t * (1 - t * t), rtol=1e-5, atol=1e-6)
    assert grads.devices() == x.devices()
    batched = corejax.vmap(lambda row: row.at[0].set(0.0))(x)
    np.testing.assert_array_equal(batched[:, 0], np.zeros(8))


@pytest.mark.parametrize("like", [jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: corejax.lax.full_like(x, 2)])
def test_arrays_like_others_lie_where_those_do(mesh: Mesh, x: Any, like: Any) -> None:
    made = like(x)
    assert made.sharding == x.sharding and np.all(np.asarray(made) == np.asarray(like(VALUE)))
    assert jnp.full_like(x, np.arange(4), dtype=np.int32).sharding == x.sharding
    assert jnp.zeros_like(x, shape=(3,)).devices() == jnp.zeros_like(VALUE).devices()
    other = NamedSharding(mesh, P("b"))
    assert jnp.zeros_like(x, device=other).sharding == jnp.zeros_like(x, out_sharding=other).sharding == other


def test_functions_that_are_remembered_go_where_arrays_are(mesh: Mesh, x: Any) -> None:
    for _ in range(4):  # recorded at the second call, run as a program on the host from the third on
        for f in (jnp.sum, jnp.mean, jnp.exp2, lambda v: jnp.clip(v, 0, 1), lambda v: jnp.concatenate([v, v])):
            out = f(x)
            assert out.devices() == x.devices()
            np.testing.assert_allclose(out, f(corejax.device_put(VALUE)), rtol=1e-6)


def test_control_flow_runs_where_arrays_are(x: Any) -> None:
    carry, ys = corejax.lax.scan(lambda c, row: (c + row, c.sum()), jnp.zeros(4), x)
    np.testing.assert_allclose(carry, VALUE.sum(0))
    np.testing.assert_allclose(ys, np.concatenate([[0], np.cumsum(VALUE.sum(1))[:-1]]))
    np.testing.assert_array_equal(corejax.lax.cond(True, lambda v: v + 1, lambda v: v, x), VALUE + 1)


def test_linear_functions_run_where_arrays_are(x: Any) -> None:
    for f in (lambda v: jnp.sin(v) * 2, corejax.jit(lambda v: jnp.sin(v) * 2)):
        _, push = corejax.linearize(f, x)
        _, pull = corejax.vjp(f, x)
        for tangent in (push(x), pull(x)[0]):
            assert tangent.sharding.is_equivalent_to(x.sharding, 2)
            np.testing.assert_allclose(tangent, 2 * np.cos(VALUE) * VALUE, rtol=1e-5)


def test_threads_put_and_run_at_the_same_time(mesh: Mesh) -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        try:
            for spec in (P("a", "b"), P("b"), P()):
                y = corejax.device_put(VALUE + seed, NamedSharding(mesh, spec))
                np.testing.assert_allclose(y * 2 + 1, (VALUE + seed) * 2 + 1)
                np.testing.assert_allclose(corejax.jit(lambda v: v.T + seed)(y), (VALUE + seed).T + seed)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_on_different_devices_do_not_mix(mesh: Mesh, x: Any) -> None:
    alone = corejax.device_put(VALUE, corejax.devices()[1])
    half = corejax.device_put(VALUE, NamedSharding(corejax.make_mesh((4,), ("z",)), P("z")))
    turned = Mesh(np.array(corejax.devices())[::-1].reshape(4, 2), ("a", "b"))
    for other, ids in (
        (alone, r"\[1\]"),
        (half, r"\[0, 1, 2, 3\]"),
        (corejax.device_put(VALUE, NamedSharding(turned, P())), r"\[7, 6"),
    ):
        with pytest.raises(ValueError, match=rf"devices {ids}|runs on {ids}"):
            x + other
        with pytest.raises(ValueError, match=r"float32.*Put it there"):
            corejax.jit(lambda a, b: a + b)(x, other)
    np.testing.assert_array_equal(x + corejax.device_put(VALUE), 2 * VALUE)  # that is bound to none


def test_keys_lie_over_devices(mesh: Mesh) -> None:
    keys = corejax.random.split(corejax.random.key(1), 8)
    spread = corejax.device_put(keys, NamedSharding(mesh, P(("a", "b"))))
    assert spread.sharding.spec == P(("a", "b")) and spread.addressable_shards[2].data.dtype == keys.dtype
    drawn = corejax.jit(corejax.vmap(corejax.random.normal))(spread)
    assert drawn.sharding.spec == P(("a", "b"))
    np.testing.assert_allclose(drawn, corejax.vmap(corejax.random.normal)(keys), rtol=1e-6)


@pytest.mark.parametrize("transform", [lambda f: f, corejax.jit], ids=["eager", "jit"])
def test_constraints_lay_keys_out(mesh: Mesh, transform: Any) -> None:
    keys = corejax.random.split(corejax.random.key(1), 8)
    sharding = NamedSharding(mesh, P(("a", "b")))
    spread = transform(lambda k: corejax.lax.with_sharding_constraint(k, sharding))(keys)
    assert spread.sharding.spec == P(("a", "b")) and spread.dtype == keys.dtype
    whole = transform(corejax.vmap(lambda k: corejax.lax.with_sharding_constraint(k, NamedSharding(mesh, P()))))(keys)
    for found in (spread, whole):
        np.testing.assert_array_equal(corejax.random.key_data(found), corejax.random.key_data(keys))


def test_copies_pickles_and_deletion(x: Any) -> None:
    for same in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), np.array(x)):
        np.testing.assert_array_equal(same, VALUE)
    x.copy_to_host_async()
    several = [x, 1, "none"]
    assert corejax.copy_to_host_async(several) is several

    class Fails:
        def copy_to_host_async(self) -> None:
            raise AttributeError("its own")

    with pytest.raises(AttributeError, match="its own"):
        corejax.copy_to_host_async(Fails())
    np.testing.assert_array_equal(corejax.device_get({"x": x})["x"], VALUE)
    y = x + 1
    y.delete()
    assert y.is_deleted()
    for use in (lambda: y + 1, lambda: np.asarray(y), lambda: corejax.jit(jnp.sin)(y)):
        with pytest.raises(RuntimeError, match="deleted"):
            use()


def test_arrays_are_made_of_parts(mesh: Mesh) -> None:
    sharding, asked = NamedSharding(mesh, P("a")), []

    def part(index: Any) -> Any:
        asked.append(index)
        return VALUE[index]

    made = corejax.make_array_from_callback((8, 4), sharding, part)
    np.testing.assert_array_equal(made, VALUE)
    assert made.sharding == sharding and len(asked) == 4
    parts = [shard.data for shard in made.addressable_shards]
    joined = corejax.make_array_from_single_device_arrays((8, 4), sharding, parts[::-1])
    np.testing.assert_array_equal(joined + 1, VALUE + 1)
    local = corejax.make_array_from_process_local_data(sharding, {"x": VALUE}, {"x": (8, 4)})
    np.testing.assert_array_equal(local["x"], VALUE)
    assert local["x"].sharding == sharding
    single = corejax.make_array_from_callback((2,), SingleDeviceSharding(corejax.devices()[2]), lambda i: np.ones(2)[i])
    assert single.devices() == {corejax.devices()[2]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda s, x: corejax.make_array_from_callback((8, 4), s, lambda i: VALUE),
            r"shape \(2, 4\).*returned f32\[8,4\]",
        ),
        (lambda s, x: corejax.make_array_from_callback((6, 4), s, lambda i: VALUE[i]), r"axis 0 into 4 parts.*size 6"),
        (
            lambda s, x: corejax.make_array_from_callback((8,), None, lambda i: VALUE[i]),
            r"sharding: expected .*got None",
        ),
        (
            lambda s, x: corejax.make_array_from_callback("ab", s, lambda i: VALUE[i]),
            r"shape must be a tuple|invalid literal",
        ),
        (
            lambda s, x: corejax.make_array_from_callback((8, 4), s, lambda i: VALUE[i], np.int32),
            r"dtype i32.*returned f32",
        ),
        (
            lambda s, x: corejax.make_array_from_single_device_arrays((8, 4), s, [x] * 8),
            r"have shape \(2, 4\).*f32\[8,4\]",
        ),
        (
            lambda s, x: corejax.make_array_from_single_device_arrays((32, 4), s, [x] * 8),
            r"which has another one of the arrays",
        ),
        (
            lambda s, x: corejax.make_array_from_single_device_arrays((32, 4), s, [x]),
            r"without one: \[CpuDevice\(id=1\)",
        ),
        (
            lambda s, x: corejax.make_array_from_single_device_arrays((32, 4), s, [1]),
            r"arrays\[0\] must be an array.*got 1",
        ),
        (
            lambda s, x: corejax.make_array_from_process_local_data(s, VALUE, (16, 4)),
            r"has shape \(16, 4\), got data of .*\(8, 4\)",
        ),
        (lambda s, x: corejax.device_put(np.ones((6, 4)), s), r"device_put: .*axis 0 into 4 parts.*\(6, 4\)"),
        (lambda s, x: corejax.device_put(np.float32(1), s), r"device_put: .*at least 1 dimensions.*one of 0"),
        (lambda s, x: corejax.device_put(VALUE, P("a")), r"no mesh is set"),
        (lambda s, x: corejax.device_put(VALUE, NamedSharding(s.mesh.abstract_mesh, P("a"))), r"has no devices"),
        (lambda s, x: x.addressable_data(1), r"list index"),
    ],
)
def test_parts_that_do_not_fit(mesh: Mesh, make: Any, message: str) -> None:
    sharding, x = NamedSharding(mesh, P("a")), corejax.device_put(VALUE, corejax.devices()[0])
    with pytest.raises((ValueError, TypeError, RuntimeError, IndexError), match=message):
        make(sharding, x)


def test_numbers_as_operands() -> None:
    """They are kept where they were put, by value and type, unless a program takes their memory."""
    x = corejax.device_put(np.arange(8.0), NamedSharding(corejax.make_mesh((8,), ("x",)), P("x")))
    for _ in range(2):
        for number in (0.0, -0.0, 2.0, np.float32(2), 3, True, np.nan):
            np.testing.assert_array_equal(x * number, np.arange(8.0) * number)
        assert np.signbit(np.asarray(x * -0.0)[1]) and not np.signbit(np.asarray(x * 0.0)[1])
    taking = corejax.jit(lambda n, x: (n + 1, x * n), donate_argnums=0)
    for _ in range(3):
        n, y = taking(corejax.numpy.float32(2.0), x)
        assert n == 3.0 and np.asarray(y)[1] == 2.0
    np.testing.assert_array_equal(x * 2.0, np.arange(8.0) * 2)


READS = """
import sys
import numpy as np
import corejax
from corejax import P
mesh = corejax.make_mesh((2, 4), ("a", "b"))
for dtype in ("float32", "int8", "bool", "complex64", "uint64", "float16"):
    for spec in (P("a", "b"), P("b"), P(None, "a"), P(("b", "a")), P()):
        value = np.arange(64).reshape(8, 8).astype(dtype)
        x = corejax.device_put(value, corejax.NamedSharding(mesh, spec))
        for y in (x, corejax.jit(lambda x: x)(x)):
            assert np.array_equal(np.asarray(y), value), (dtype, spec)
            y.delete()
assert float(corejax.device_put(3.0, corejax.NamedSharding(mesh, P()))) == 3.0
assert "jax" not in sys.modules
for dtype in ("bfloat16", "float8_e5m2", "int4"):  # DLPack, or NumPy, lacks them
    value = np.arange(8).astype(corejax.numpy.dtype(dtype))
    assert np.array_equal(np.asarray(corejax.device_put(value, corejax.NamedSharding(mesh, P("a")))), value)
"""


def test_reading_imports_no_jax() -> None:
    env = {**os.environ, "COREJAX_NUM_CPU_DEVICES": "8"}
    subprocess.run([sys.executable, "-c", READS], check=True, timeout=120, env=env)
