"""Functions for which axes of the mesh are of another type: numbers, layouts, and what they are told of the mesh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P
from corejax.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    get_mesh,
    use_abstract_mesh,
)

X = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
EXPLICIT = (AxisType.Explicit, AxisType.Explicit)


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    made = corejax.make_mesh((4, 2), ("x", "y"), axis_types=EXPLICIT)
    with corejax.set_mesh(made):
        yield made


def spec(x: Any) -> Any:
    entries = list(x.sharding.spec)
    while entries and entries[-1] is None:
        entries.pop()
    return P(*entries)


def test_auto_axes_lays_results_out(mesh: Mesh) -> None:
    seen: list[Any] = []

    def f(x: Any, *, scale: float = 2.0) -> Any:
        seen.append(get_abstract_mesh().axis_types)
        return {"product": x @ x.T * scale, "sum": jnp.sum(x, 1)}

    x = corejax.device_put(X, P("x", "y"))
    out = {"product": P("x"), "sum": P("y")}
    for call in (auto_axes(f, out_sharding=out), lambda x: auto_axes(f)(x, out_sharding=out)):
        for run in (call, corejax.jit(call)):
            found = run(x)
            np.testing.assert_allclose(found["product"], 2 * X @ X.T, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(found["sum"], X.sum(1), rtol=1e-5)
            assert spec(found["product"]) == P("x") and spec(found["sum"]) == P("y")
    assert set(seen) == {(AxisType.Auto, AxisType.Auto)}
    assert get_abstract_mesh().axis_types == EXPLICIT and get_mesh() is mesh

    @auto_axes(axes="y", out_sharding=P("x"))
    def part(x: Any) -> Any:
        seen.append(get_abstract_mesh().axis_types)
        return jnp.sin(x)

    gradient = corejax.grad(lambda x: jnp.sum(part(x)))(x)
    assert seen[-1] == (AxisType.Explicit, AxisType.Auto)
    np.testing.assert_allclose(gradient, np.cos(X), rtol=1e-6)
    batched = corejax.vmap(part)(jnp.stack([x, x + 1]))
    np.testing.assert_allclose(batched[1], np.sin(X + 1), rtol=1e-5, atol=1e-6)


def test_explicit_axes_lays_arguments_out(mesh: Mesh) -> None:
    seen: list[Any] = []

    def f(x: Any, y: Any) -> Any:
        seen.append(get_abstract_mesh().axis_types)
        return x + 1, y * 2

    auto = mesh.update_axis_types({"x": AxisType.Auto, "y": AxisType.Auto})
    with corejax.set_mesh(auto):
        told = explicit_axes(f, in_sharding=(P("x"), P("y")))
        for call in (told, lambda a, b: explicit_axes(f)(a, b, in_sharding=(P("x"), P("y")))):
            a, b = call(X, X)
            np.testing.assert_array_equal(a, X + 1)
            np.testing.assert_array_equal(b, X * 2)
            assert spec(a) == P("x") and spec(b) == P("y")
    assert seen == [EXPLICIT, EXPLICIT]


def test_without_a_mesh() -> None:
    np.testing.assert_array_equal(auto_axes(lambda x: x + 1, out_sharding=P("x"))(X), X + 1)
    sharding = NamedSharding(corejax.make_mesh((8,), ("x",)), P("x"))
    assert auto_axes(lambda x: x + 1, out_sharding=sharding)(X).sharding == sharding
    with pytest.raises(ValueError, match=r"explicit_axes: no mesh is set.*corejax.set_mesh"):
        explicit_axes(lambda x: x, in_sharding=sharding)(X)


def test_what_is_refused(mesh: Mesh) -> None:
    with pytest.raises(TypeError, match="auto_axes: out_sharding is given neither"):
        auto_axes(jnp.sin)(X)
    with pytest.raises(TypeError, match="explicit_axes: in_sharding is given neither"):
        explicit_axes(jnp.sin)(X)
    with pytest.raises(ValueError, match=r"auto_axes: axes names 'z', but the mesh has 'x', 'y'"):
        auto_axes(jnp.sin, axes=("x", "z"), out_sharding=P())(X)
    other = NamedSharding(corejax.make_mesh((8,), ("z",)), P("z"))
    with pytest.raises(ValueError, match=r"auto_axes: .*'z'.* is over another mesh than .*the context's"):
        auto_axes(jnp.sin, out_sharding=other)(X)

    def failing(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        auto_axes(failing, out_sharding=P())(X)
    assert get_mesh() is mesh


def test_use_abstract_mesh(mesh: Mesh) -> None:
    auto = AbstractMesh((4, 2), ("x", "y"))
    with use_abstract_mesh(auto):
        assert get_abstract_mesh() == auto and get_mesh().device_tuple == mesh.device_tuple
        assert spec(corejax.device_put(X, P("x"))) == P("x")
    assert get_mesh() is mesh
    with pytest.raises(ValueError, match=r"use_abstract_mesh: .* has 4 devices, but the current mesh Mesh\(.* has"):
        use_abstract_mesh(AbstractMesh((4,), ("x",)))
    with pytest.raises(TypeError, match="use_abstract_mesh: expected an AbstractMesh, got Mesh"):
        use_abstract_mesh(mesh)  # type: ignore[arg-type]


def test_use_abstract_mesh_without_devices() -> None:
    """Programs know their devices by their arguments."""
    x = corejax.device_put(X, NamedSharding(corejax.make_mesh((8,), ("x",)), P()))
    with use_abstract_mesh(AbstractMesh((8,), ("x",))):
        y = corejax.jit(lambda x: corejax.lax.with_sharding_constraint(x * 2, P("x")))(x)
    np.testing.assert_array_equal(y, 2 * X)
    assert y.addressable_shards[0].data.shape == (1, 4)
    assert get_mesh().empty


def test_no_mesh_is_set() -> None:
    with corejax.set_mesh(corejax.make_mesh((8,), ("x",))):
        with corejax.set_mesh(None):
            assert get_mesh().empty
        assert not get_mesh().empty


def test_names_of_earlier_programs() -> None:
    from corejax.experimental.pjit import pjit
    from corejax.experimental.shard_map import shard_map

    mesh = corejax.make_mesh((8,), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    assert pjit(lambda x: x + 1, out_shardings=sharding)(X).sharding == sharding
    summed = shard_map(lambda x: corejax.lax.psum(x, "x"), mesh, (P("x"),), P())
    np.testing.assert_allclose(summed(X)[0], X.sum(0), rtol=1e-5)
    assert corejax.sharding.make_single_device_sharding(corejax.devices()[1]).device_tuple == (corejax.devices()[1],)
