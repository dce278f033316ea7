"""Meshes, specs and shardings over them, and the mesh of the context."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import corejax
from corejax.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    get_abstract_mesh,
    get_mesh,
)

P = PartitionSpec


@pytest.fixture
def mesh() -> Mesh:
    return corejax.make_mesh((4, 2), ("a", "b"))


@pytest.fixture
def theirs() -> Any:
    jax = pytest.importorskip("jax")
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))


SPECS: list[tuple[Any, ...]] = [
    (),
    (None,),
    ("a",),
    ("b", "a"),
    ("a", "b"),
    (("a", "b"),),
    (("b", "a"), None),
    (None, ("a", "b")),
    (None, "b"),
]


def test_a_mesh_says_what_it_is(mesh: Mesh, theirs: Any) -> None:
    assert repr(mesh) == repr(theirs) and str(mesh) == str(theirs)
    assert mesh.shape == theirs.shape and mesh.size == 8 and not mesh.empty
    assert mesh.axis_names == ("a", "b") and mesh.axis_sizes == (4, 2) and mesh.axis_types == (AxisType.Auto,) * 2
    np.testing.assert_array_equal(mesh.device_ids, theirs.device_ids)
    assert mesh.local_mesh is mesh and not mesh.is_multi_process and set(mesh.local_devices) == set(corejax.devices())
    assert mesh.abstract_mesh == AbstractMesh((4, 2), ("a", "b"))
    assert str(mesh.abstract_mesh) == "AbstractMesh('a': 4, 'b': 2, axis_types=(Auto, Auto))"
    manual = mesh.update_axis_types({"a": AxisType.Manual})
    assert manual.manual_axes == ("a",) and manual.auto_axes == ("b",) and manual != mesh


def test_equal_meshes_are_of_the_same_devices_in_order(mesh: Mesh) -> None:
    grid = np.array(corejax.devices()).reshape(4, 2)
    same = Mesh(grid, ["a", "b"])
    assert same == mesh and hash(same) == hash(mesh) and Mesh(grid[::-1], ("a", "b")) != mesh
    assert Mesh(grid, ("b", "a")) != mesh and Mesh(grid.T, ("a", "b")) != mesh
    assert Mesh(corejax.devices(), "a").axis_names == ("a",)
    for copied in (pickle.loads(pickle.dumps(mesh)), copy.deepcopy(mesh)):
        assert copied == mesh
    assert {mesh: 1}[same] == 1
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: corejax.make_mesh((4, 4), ("a", "b")), r"16 devices, but there are 8.*num_cpu_devices"),
        (lambda: corejax.make_mesh((8,), ("a", "b")), r"have 1 axes, but axis_names are 2"),
        (lambda: corejax.make_mesh((4, 2), ("a", "a")), r"'a' occurs twice"),
        (lambda: corejax.make_mesh((-1,), ("a",)), r"not negative"),
        (lambda: Mesh(np.array(corejax.devices()), ("a", "b")), r"have 1 axes"),
        (lambda: Mesh([corejax.devices()[0]] * 2, ("a",)), r"a device occurs twice"),
        (lambda: Mesh([1, 2], ("a",)), r"must be of corejax.devices\(\), got 1 of type int"),
        (lambda: Mesh(corejax.devices(), ("a",), (AxisType.Auto,) * 2), r"not as many as axis_names"),
        (lambda: Mesh(corejax.devices(), ("a",), ("Auto",)), r"AxisType, got 'Auto'"),
        (lambda: AbstractMesh((2,), ("a",)).devices, r"has no devices"),
    ],
)
def test_a_mesh_that_is_none(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize("entries", SPECS)
def test_a_sharding_places_as_jax_does(mesh: Mesh, theirs: Any, entries: tuple[Any, ...]) -> None:
    jax = pytest.importorskip("jax")
    ours, other = NamedSharding(mesh, P(*entries)), jax.sharding.NamedSharding(theirs, jax.P(*entries))
    assert repr(ours) == repr(other) and repr(P(*entries)) == repr(jax.P(*entries))
    shape = (8, 16, 3)
    by_id = {d.id: index for d, index in ours.devices_indices_map(shape).items()}
    assert by_id == {d.id: index for d, index in other.devices_indices_map(shape).items()}
    assert ours.shard_shape(shape) == other.shard_shape(shape)
    assert ours.is_fully_replicated == other.is_fully_replicated and ours.is_fully_addressable
    assert ours.num_devices == 8 and ours.device_set == set(corejax.devices())


@pytest.mark.parametrize("entries", SPECS)
def test_the_spec_of_tiles(mesh: Mesh, entries: tuple[Any, ...]) -> None:
    sharding = NamedSharding(mesh, P(*entries))
    found = sharding.like(sharding.tiles(2))
    assert isinstance(found, NamedSharding) and found.is_equivalent_to(sharding, 2)
    assert tuple(found.spec) == tuple(sharding.spec)[: len(found.spec)]


def test_tiles_that_no_spec_has(mesh: Mesh) -> None:
    halves = np.arange(8).reshape(2, 4)  # half of axis "a"
    odd = NamedSharding(mesh, P()).like(halves)
    assert not isinstance(odd, NamedSharding) and odd.shard_shape((6,)) == (3,)
    assert list(odd.devices_indices_map((6,)).values()) == [(slice(0, 3),)] * 4 + [(slice(3, 6),)] * 4


def test_equal_and_equivalent_shardings(mesh: Mesh) -> None:
    short, long = NamedSharding(mesh, P("a")), NamedSharding(mesh, P("a", None))
    assert short != long and short.is_equivalent_to(long, 2)
    assert not short.is_equivalent_to(NamedSharding(mesh, P("b")), 2)
    assert NamedSharding(mesh, P(("a",))) == short and hash(NamedSharding(mesh, P(("a",)))) == hash(short)
    turned = Mesh(np.array(corejax.devices()).reshape(4, 2).T, ("b", "a"))
    assert NamedSharding(turned, P("a", "b")).is_equivalent_to(NamedSharding(mesh, P("a", "b")), 2)
    assert not NamedSharding(turned, P("b")).is_equivalent_to(NamedSharding(mesh, P("a")), 1)
    assert pickle.loads(pickle.dumps(short)) == short and short.with_memory_kind("device") == short
    single = corejax.sharding.SingleDeviceSharding(corejax.devices()[0])
    assert not short.is_equivalent_to(single, 1) and single.is_fully_replicated
    assert single.devices_indices_map((3,)) == {corejax.devices()[0]: (slice(None),)}


def test_a_spec_is_a_sequence() -> None:
    spec = P("a", None, ("a2", "b"), P.UNCONSTRAINED)
    assert (
        len(spec) == 4
        and spec[2] == ("a2", "b")
        and next(iter(spec)) == "a"
        and spec[1:] == (None, ("a2", "b"), spec[3])
    )
    assert spec == ("a", None, ("a2", "b"), P.UNCONSTRAINED) and P("a") != P("a", None)
    assert P(("a",)) == P("a") and P(()) == P(None) and P(["a", "b"]) == P(("a", "b"))
    assert P("a") + P("b") == P("a", "b") and P("b").__radd__(("a",)) == P("a", "b") and P("a").index("a") == 0
    assert repr(spec) == "P('a', None, ('a2', 'b'), UNCONSTRAINED)" and corejax.P is P
    assert pickle.loads(pickle.dumps(spec)) == spec and {spec: 1}[P(*spec)] == 1
    assert corejax.tree.leaves({"x": spec}) == [spec]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: P("a", "a"), r"P\('a', 'a'\) has axis 'a' twice"),
        (lambda m: P("a", ("b", "a")), r"axis 'a' twice"),
        (lambda m: P(1), r"got 1 of type int in \(1,\)"),
        (lambda m: P(("a", None)), r"an entry is None"),
        (lambda m: NamedSharding(m, P("z")), r"P\('z',\) names axis 'z', but the mesh has 'a', 'b'"),
        (lambda m: NamedSharding(m, "a"), r"spec must be a PartitionSpec.*got 'a'"),
        (lambda m: NamedSharding(None, P()), r"mesh must be a Mesh, got None"),
        (lambda m: NamedSharding(m, P(), memory_kind="far"), r"memory_kind='far'.*memory of the kinds"),
        (lambda m: NamedSharding(m, P("a", "b")).shard_shape((8,)), r"at least 2 dimensions.*one of 1"),
        (lambda m: NamedSharding(m, P("a")).shard_shape((6, 2)), r"splits axis 0 into 4 parts.*size 6"),
        (lambda m: NamedSharding(m, P(None, ("a", "b"))).shard_shape((6, 4)), r"axis 1 into 8 parts.*size 4"),
    ],
)
def test_a_sharding_that_is_none(mesh: Mesh, make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(mesh)


def test_the_mesh_of_the_context(mesh: Mesh) -> None:
    assert get_mesh().empty and get_abstract_mesh() == AbstractMesh((), ())
    with corejax.set_mesh(mesh) as entered:
        assert entered is mesh is get_mesh() and get_abstract_mesh() == mesh.abstract_mesh
        with corejax.make_mesh((2,), ("z",)) as inner:
            assert get_mesh() is inner
        assert get_mesh() is mesh
    assert get_mesh().empty
    with pytest.raises(KeyError), corejax.sharding.use_mesh(mesh):
        raise KeyError
    assert get_mesh().empty
    change = corejax.set_mesh(mesh)
    assert get_mesh() is mesh
    change.restore()
    assert get_mesh().empty
    with pytest.raises(TypeError, match=r"set_mesh: expected a Mesh .*got \('a',\)"):
        corejax.set_mesh(("a",))
    with pytest.raises(ValueError, match="context_mesh must be a Mesh"):
        corejax.config.update("context_mesh", "a")
    with pytest.raises(RuntimeError, match=r"with_sharding_constraint.*corejax.set_mesh\(mesh\)"):
        corejax.lax.with_sharding_constraint(np.ones(4), P("a"))


def test_attributes_are_jaxs() -> None:
    jax = pytest.importorskip("jax")
    found = []
    for m in (corejax, jax):
        types = m.sharding.AxisType
        mesh = m.make_mesh((4, 2), ("a", "b"), axis_types=(types.Auto, types.Auto))
        sharding = m.NamedSharding(mesh, m.P("a", None))
        meshes = [
            mesh,
            mesh.abstract_mesh,
            mesh.update(axis_types=(types.Manual,) * 2),
            mesh.update(axis_names=("c", "d")),
        ]
        meshes.append(mesh.abstract_mesh.update(axis_sizes=(2, 2), axis_types=(types.Explicit,) * 2))
        found.append(
            [
                [(x.axis_names, x.axis_sizes) for x in meshes] + [mesh.is_scalar],
                [(x.are_all_axes_auto, x.are_all_axes_explicit, x.are_all_axes_manual) for x in meshes],
                [tuple(m.P("a", None).partitions), tuple(m.P("a").update(partitions=("b", None)))],
                sharding.has_addressable_devices,
            ]
        )
        sharding.check_compatible_aval((8, 3))
        with pytest.raises(ValueError, match=r"."):
            sharding.check_compatible_aval((8,)) if m is corejax else sharding.check_compatible_aval(())
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        sharding_of_two().check_compatible_aval((8,))


def sharding_of_two() -> NamedSharding:
    return NamedSharding(corejax.make_mesh((4, 2), ("a", "b")), P("a", None))


def test_specs_with_axes_to_sum_over() -> None:
    spec = P("a", unreduced={"b"}, reduced={"c"})
    assert (spec.unreduced, spec.reduced) == ({"b"}, {"c"}) and repr(spec) == "P('a', unreduced={'b'}, reduced={'c'})"
    assert spec == P("a", reduced={"c"}, unreduced=frozenset("b")) != P("a") and spec != ("a",)
    assert len({spec, P("a"), pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)}) == 2
    assert spec.update("x", unreduced=set()) == P("x", reduced={"c"}) and spec.update(reduced={"d"}).unreduced == {"b"}
    for axes, error in (("b", TypeError), ({None}, ValueError), ({"a"}, ValueError)):
        with pytest.raises(error, match="PartitionSpec"):
            P("a", unreduced=axes)
    mesh = corejax.make_mesh((2, 2), ("a", "b"))
    with pytest.raises(NotImplementedError, match="unreduced arrays do not exist"):
        NamedSharding(mesh, P("a", unreduced={"b"}))
    with pytest.raises(NotImplementedError, match="unreduced arrays do not exist"):
        corejax.shard_map(lambda x: x, mesh=mesh, in_specs=P("a", reduced={"b"}), out_specs=P("a"))(np.ones(2))


def test_the_kind_of_devices_of_an_abstract_mesh() -> None:
    device = corejax.devices()[0]
    mesh = corejax.make_mesh((2,), ("a",)).abstract_mesh
    kind = mesh.abstract_device
    assert (kind.device_kind, kind.platform) == (device.device_kind, device.platform)
    assert AbstractMesh((2,), ("a",)).abstract_device is None
    given = AbstractMesh((2,), ("a",), abstract_device=AbstractDevice("acme", 2, "tpu"))
    assert given.update(axis_sizes=(4,)).abstract_device == AbstractDevice("acme", 2, "tpu")
    with pytest.raises(TypeError, match="abstract_device must be an AbstractDevice or None"):
        AbstractMesh((2,), ("a",), abstract_device="tpu")


def test_a_mesh_of_manual_axes_is_no_context() -> None:
    mesh = Mesh(corejax.devices(), "x", axis_types=(AxisType.Manual,))
    with pytest.raises(ValueError, match=r"set_mesh: .* contains manual axes"):
        corejax.set_mesh(mesh)
