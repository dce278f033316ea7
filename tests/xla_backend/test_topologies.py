"""Devices that are not there: meshes of them, and programs that are compiled for them and not run."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P
from corejax.errors import BackendError
from corejax.experimental import topologies
from corejax.ir import parse_jaxpr, same_jaxpr
from corejax.sharding import AbstractMesh, Mesh, SingleDeviceSharding

pytest.importorskip("jaxlib")


def layer(x: Any, w: Any, v: Any) -> Any:
    return jnp.tanh(x @ w) @ v


def mesh_of(name: str, shape: tuple[int, ...]) -> Mesh:
    mesh: Mesh = topologies.make_mesh(topologies.get_topology_desc(name, "cpu"), shape, ("data", "model"))
    return mesh


def arguments(mesh: Any, n: int = 512) -> tuple[corejax.ShapeDtypeStruct, ...]:
    specs = (P("data"), P(None, "model"), P("model"))
    return tuple(corejax.ShapeDtypeStruct((n, n), np.float32, sharding=NamedSharding(mesh, spec)) for spec in specs)


@pytest.mark.parametrize(
    ("name", "shape"), [("8x8", (8, 8)), ("4096", (64, 64)), ("2049", (683, 3)), ("2x3x4", (4, 6))]
)
def test_a_program_is_compiled_for_any_number_of_devices(name: str, shape: tuple[int, ...]) -> None:
    mesh, (data, model) = mesh_of(name, shape), shape
    size = 2 * data * model
    compiled = corejax.jit(layer).lower(*arguments(mesh, size)).compile()
    given, _ = compiled.input_shardings
    assert [s.spec for s in given] == [P("data"), P(None, "model"), P("model")]
    assert compiled.output_shardings == NamedSharding(mesh, P("data"))
    memory = compiled.memory_analysis()
    part = 4 * size * size
    assert memory.argument_size_in_bytes == part // data + 2 * part // model
    assert memory.output_size_in_bytes == part // data
    assert compiled.cost_analysis()["flops"] == pytest.approx(2 * 2 * size**3 / (data * model), rel=0.05)
    (found,) = corejax.debug.collectives(compiled)
    assert (found.kind, found.axes, found.devices, found.nbytes) == ("all-reduce", ("model",), model, part // data)


def test_such_a_program_is_not_run() -> None:
    mesh = mesh_of("2x2", (2, 2))
    compiled = corejax.jit(layer).lower(*arguments(mesh, 8)).compile()
    x = np.ones((8, 8), np.float32)
    for _ in range(2):
        with pytest.raises(BackendError, match=r"jit of layer: a call needs attached devices.*topology='2x2'"):
            compiled(x, x, x)
    with pytest.raises(BackendError, match="a call needs attached devices"):
        corejax.jit(layer, in_shardings=NamedSharding(mesh, P()))(x, x, x)
    with pytest.raises(BackendError, match="a call needs attached devices"):
        corejax.jit(jnp.sin, device=mesh.devices[0, 0])(1.0)
    with pytest.raises(BackendError, match=r"CompileOnlyDevice.*is not there"):
        compiled.runtime_executable().executable(x, x, x)


def test_no_array_is_put_there() -> None:
    mesh = mesh_of("2x2", (2, 2))
    rows, device = NamedSharding(mesh, P("data")), mesh.devices[0, 0]
    for put in (
        lambda: corejax.device_put(np.ones(4), rows),
        lambda: corejax.device_put(1.0, device),
        lambda: corejax.reshard(jnp.ones(4), rows),
        lambda: corejax.lax.with_sharding_constraint(jnp.ones(4), rows),
        lambda: corejax.shard_map(jnp.sin, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(jnp.ones(4)),
    ):
        with pytest.raises(BackendError, match=r"is not there; programs for the dev|needs attached devices"):
            put()
    assert not rows.is_fully_addressable and not rows.addressable_devices and rows.num_devices == 4
    with pytest.raises(ValueError, match="none of the devices"):
        corejax.make_array_from_callback((4,), rows, lambda i: np.ones(4)[i])


def test_one_device() -> None:
    (device,) = topologies.get_topology_desc("1").devices
    there = SingleDeviceSharding(device)
    for lowered in (
        corejax.jit(jnp.sin, device=device).lower(np.ones(3, np.float32)),
        corejax.jit(jnp.sin).lower(corejax.ShapeDtypeStruct((3,), np.float32, sharding=there)),
    ):
        compiled = lowered.compile()
        assert compiled.output_shardings == there and "sine" in compiled.as_text() + lowered.as_text()


def test_options_constants_donation_and_callbacks() -> None:
    mesh, table = mesh_of("2x2", (2, 2)), jnp.arange(8.0)
    rows = NamedSharding(mesh, P("data"))

    def update(x: Any, key: Any) -> Any:
        corejax.debug.print("{}", x[0])
        return x + table + corejax.random.normal(key, (8,))

    typed = corejax.ShapeDtypeStruct((8,), np.float32, sharding=rows)
    key = corejax.eval_shape(lambda: corejax.random.key(0))
    compiled = corejax.jit(update, donate_argnums=0, out_shardings=rows).lower(typed, key).compile()
    assert compiled.memory_analysis().alias_size_in_bytes == 4 * 8 // 2
    quick = corejax.jit(jnp.sin).lower(typed).compile({"xla_cpu_enable_fast_math": True})
    assert quick.output_shardings == rows
    with pytest.raises(ValueError, match="XLA rejects compiler_options"):
        corejax.jit(jnp.sin).lower(typed).compile({"xla_no_such_option": True})


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "bfloat16", "float8_e4m3fn", "complex64"])
def test_types_and_no_elements(dtype: str) -> None:
    mesh = mesh_of("2x2", (2, 2))
    with corejax.enable_x64():
        for shape in ((0, 4), (4, 2)):
            typed = corejax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P("data")))
            compiled = corejax.jit(lambda x: (x.T, x[:1])).lower(typed).compile()
            assert compiled.output_shardings[0].num_devices == 4


def test_equal_topologies_have_equal_devices() -> None:
    mesh = mesh_of("2x2", (2, 2))
    assert mesh == mesh_of("2x2", (2, 2)) == pickle.loads(pickle.dumps(mesh)) != mesh_of("4", (2, 2))
    assert repr(mesh.devices[0, 1]) == "CompileOnlyDevice(id=1, topology='2x2', platform='cpu')"
    assert repr(topologies.get_topology_desc("2x2")) == "TopologyDescription(4 devices of platform 'cpu')"
    rows = NamedSharding(mesh, P("data"))
    program = corejax.make_jaxpr(lambda x: corejax.lax.with_sharding_constraint(x, rows))(jnp.ones(4))
    assert same_jaxpr(parse_jaxpr(str(program)), program)
    assert topologies.get_attached_topology().devices == corejax.devices()


def test_errors_of_topologies_and_meshes() -> None:
    with pytest.raises(NotImplementedError, match="platform='tpu': programs are compiled ahead of time for 'cpu'"):
        topologies.get_topology_desc("v4:2x2x1", "tpu")
    for name in ("", "8x", "0x4", "x", "8X8", "-1"):
        with pytest.raises(ValueError, match=r"'8x8' or '4096', got"):
            topologies.get_topology_desc(name, "cpu")
    with pytest.raises(TypeError, match="takes no chips"):
        topologies.get_topology_desc("2x2", "cpu", chips=3)
    four = topologies.get_topology_desc("2x2")
    with pytest.raises(ValueError, match=r"mesh_shape \(2, 3\) needs 6 devices, but the topology has 4"):
        topologies.make_mesh(four, (2, 3), ("a", "b"))
    with pytest.raises(ValueError, match=r"make_mesh: axis_shapes \(2, 3\) are 6 devices, but there are 4"):
        corejax.make_mesh((2, 3), ("a", "b"), devices=four.devices)
    with pytest.raises(ValueError, match="devices must all exist, or all belong to one topology"):
        Mesh([corejax.devices()[0], four.devices[0]], "a")


def test_sizes_have_to_divide() -> None:
    mesh = mesh_of("2x3", (2, 3))
    typed = corejax.ShapeDtypeStruct((4, 4), np.float32, sharding=NamedSharding(mesh, P("data", "model")))
    with pytest.raises(ValueError, match=r"jit of sin: sharding of an argument: .*axis 1 into 3 parts.*size 4 there"):
        corejax.jit(jnp.sin).lower(typed)
    with pytest.raises(ValueError, match=r"jit of sin: out_shardings: .*axis 0 into 3 parts"):
        corejax.jit(jnp.sin, out_shardings=NamedSharding(mesh, P("model"))).lower(np.ones(4, np.float32))


# -- meshes without devices ----------------------------------------------------------------------------------------


def test_lowered_without_devices_and_compiled_for_some() -> None:
    lowered = corejax.jit(layer).lower(*arguments(AbstractMesh((2, 4), ("data", "model")), 8))
    assert 'sdy.mesh @mesh = <["data"=2, "model"=4]>' in lowered.as_text()
    assert "mhlo.num_partitions = 8" in lowered.as_text()
    for name in ("2x4", "8"):
        topology = topologies.get_topology_desc(name)
        compiled = lowered.compile(device_assignment=topology.devices)
        mesh = topologies.make_mesh(topology, (2, 4), ("data", "model"))
        assert compiled.output_shardings == NamedSharding(mesh, P("data"))
        assert corejax.debug.collectives(compiled).of("all-reduce", "model").times == 1


def test_errors_of_meshes_without_devices() -> None:
    mesh = AbstractMesh((2, 4), ("data", "model"))
    lowered = corejax.jit(layer).lower(*arguments(mesh, 8))
    with pytest.raises(
        RuntimeError, match=r"compile of layer: it is lowered for a mesh without devices.*device_assignment"
    ):
        lowered.compile()
    with pytest.raises(ValueError, match="over a mesh of 8 devices, but the program runs on 6"):
        lowered.compile(device_assignment=topologies.get_topology_desc("6").devices)
    x = np.ones((8, 8), np.float32)
    with pytest.raises(ValueError, match="the program is for an abstract mesh of 8 devices"):
        corejax.jit(layer, in_shardings=NamedSharding(mesh, P()))(x, x, x)
    with pytest.raises(ValueError, match="has no devices"):
        corejax.device_put(x, NamedSharding(mesh, P("data")))
    other = AbstractMesh((3,), ("a",))
    with pytest.raises(ValueError, match="its shardings are over different numbers of devices"):
        corejax.jit(jnp.add).lower(
            arguments(mesh, 6 * 4)[0],
            corejax.ShapeDtypeStruct((24, 24), np.float32, sharding=NamedSharding(other, P("a"))),
        )
    there = corejax.jit(layer).lower(*arguments(mesh_of("2x4", (2, 4)), 8))
    with pytest.raises(ValueError, match=r"device_assignment is .* but the program is lowered for"):
        there.compile(device_assignment=topologies.get_topology_desc("4").devices)
