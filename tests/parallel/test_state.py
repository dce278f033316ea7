"""References to arrays over several devices, and in `shard_map`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import P, lax


@pytest.fixture
def mesh() -> Any:
    return corejax.make_mesh((2,), ("x",))


def test_the_sharding_stays(mesh: Any) -> None:
    array = corejax.device_put(jnp.arange(4.0), corejax.NamedSharding(mesh, P("x")))
    ref = corejax.new_ref(array)
    assert ref.sharding == array.sharding
    assert ref.committed

    @corejax.jit
    def step() -> None:
        ref[...] += 1.0
        ref[0] += 1.0

    step()
    assert ref.sharding == ref[...].sharding == array.sharding
    np.testing.assert_array_equal(ref[...], [2, 2, 3, 4])
    np.testing.assert_array_equal(array, np.arange(4.0))


def test_a_program_is_lowered_for_the_devices_of_a_reference(mesh: Any) -> None:
    array = corejax.device_put(jnp.arange(4.0), corejax.NamedSharding(mesh, P("x")))
    ref, other = corejax.new_ref(array), corejax.new_ref(2 * array)
    step = corejax.jit(lambda r: r.__setitem__(..., r[...] + other[...])).lower(ref).compile()
    step(ref)
    step(ref)
    np.testing.assert_array_equal(ref[...], 5 * np.arange(4.0))


@pytest.mark.parametrize("jit", [False, True])
def test_a_function_of_blocks_writes_its_block(mesh: Any, jit: bool) -> None:
    ref, total = corejax.new_ref(jnp.zeros((4, 3))), corejax.new_ref(jnp.zeros(3))

    def body(refs: Any, x: Any) -> Any:
        part, total = refs
        part[...] += x + lax.axis_index("x").astype(x.dtype)
        total[...] += lax.psum(part[...].sum(0), "x")
        return part[0]

    f = corejax.shard_map(body, mesh=mesh, in_specs=((P("x"), P()), P("x")), out_specs=P("x"))
    f = corejax.jit(f) if jit else f
    x = jnp.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(f((ref, total), x), [0, 1, 2, 7, 8, 9])
    f((ref, total), x)
    expected = np.arange(12.0).reshape(4, 3) + np.array([[0], [0], [1], [1]])
    np.testing.assert_array_equal(ref[...], 2 * expected)
    np.testing.assert_array_equal(total[...], 3 * expected.sum(0))


def test_a_primitive_on_references_writes_its_block(mesh: Any) -> None:
    add_p = corejax.ref.RefPrimitive(
        "test.add_block",
        ("part", "total", "x", "added"),
        writes=("part", "total"),
        discharge=lambda part, total, x, added: ((part + x, total + added), part[:1]),
    )

    def body(part: Any, total: Any, x: Any) -> Any:
        return add_p.bind(part, total, x, lax.psum(x.sum(), "x"))

    ref, total = corejax.new_ref(jnp.arange(4.0)), corejax.new_ref(0.0)
    f = corejax.shard_map(body, mesh=mesh, in_specs=(P("x"), P(), P("x")), out_specs=P("x"))
    np.testing.assert_array_equal(corejax.jit(f)(ref, total, jnp.ones(4)), [0, 2])
    np.testing.assert_array_equal(f(ref, total, jnp.ones(4)), [1, 3])
    np.testing.assert_array_equal(ref[...], [2, 3, 4, 5])
    assert total[...] == 8.0


def test_what_shard_map_refuses(mesh: Any) -> None:
    ref = corejax.new_ref(jnp.zeros(2))

    def write(ref: Any, x: Any) -> Any:
        ref[...] += x
        return x

    with pytest.raises(ValueError, match=r"result 1 may differ along axis 'x', which its spec P\(\)"):
        corejax.shard_map(write, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(ref, jnp.arange(4.0))
    with pytest.raises(ValueError, match="which may read references of enclosing functions, but not write them"):
        corejax.shard_map(lambda x: write(ref, x), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(4.0))
    with pytest.raises(ValueError, match="in_specs cannot be left out for references"):
        corejax.shard_map(write, mesh=mesh, out_specs=P("x"))(ref, jnp.arange(4.0))
    np.testing.assert_array_equal(ref[...], [0, 0])


def test_functions_of_blocks_read_references(mesh: Any) -> None:
    scale = corejax.new_ref(2.0)
    f = corejax.shard_map(lambda x: scale[...] * x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(f(jnp.ones(4)), np.full(4, 2.0))
    scale[...] = 3.0
    np.testing.assert_array_equal(f(jnp.ones(4)), np.full(4, 3.0))
