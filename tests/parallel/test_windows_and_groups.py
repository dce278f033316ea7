"""Operations that XLA's partitioner computes wrongly, or aborts at, where it may split windows: here they are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import jit, lax
from corejax.errors import BackendError
from corejax.sharding import NamedSharding
from corejax.sharding import PartitionSpec as P

Function = Callable[..., Any]


def conv(**options: Any) -> Function:
    """One of sequences."""
    strides, padding = options.pop("window_strides", (1,)), options.pop("padding", ((2, 1),))
    return lambda x, k: lax.conv_general_dilated(x, k, strides, padding, **options)


def pool(combine: Function, initial: float, **options: Any) -> Function:
    """Windows of an array of three axes."""
    return lambda x, y: lax.reduce_window(x, np.float32(initial), combine, **options)


def weighted(fun: Function) -> Function:
    """The derivative by both operands of a sum with weights."""

    def loss(x: Any, y: Any) -> Any:
        out = fun(x, y)
        return jnp.sum(out * (jnp.arange(out.size) % 5 - 2.0).reshape(out.shape))

    return corejax.grad(loss, (0, 1))


LONG = {"window_dimensions": (1, 4, 3), "window_strides": (2, 1, 3), "padding": ((2, 1), (0, 0), (1, 0))}
WIDE = {
    "window_dimensions": (3, 3, 2),
    "window_strides": (3, 3, 2),
    "padding": ((1, 2), (2, 0), (0, 1)),
    "base_dilation": (1, 2, 1),
    "window_dilation": (1, 2, 1),
}
CASES: list[tuple[str, Function, Sequence[tuple[int, ...]], Sequence[P]]] = [
    ("conv", conv(), [(16, 1, 24), (4, 1, 3)], [P(None, None, "i"), P("j")]),
    ("conv_by_both", weighted(conv()), [(4, 4, 16), (4, 4, 2)], [P("i", None, "j"), P(None, "j")]),
    ("conv_of_features", weighted(conv(feature_group_count=2)), [(8, 4, 24), (8, 2, 5)], [P("i", None, "j"), P()]),
    ("conv_of_batches", conv(batch_group_count=2), [(4, 8, 16), (8, 8, 8)], [P(None, "i", "j"), P(None, "i", "j")]),
    ("own_windows", pool(lambda a, b: a + b * 1, 0, **LONG), [(16, 4, 24)], [P(None, "j", "i")]),
    ("sums", weighted(pool(lax.add, 0, **WIDE)), [(16, 16, 4)], [P(("i", "j"))]),
    ("greatest", weighted(pool(lax.max, -np.inf, **LONG)), [(16, 4, 24)], [P("i", None, "j")]),
    ("pad", lambda x, y: lax.pad(x, np.float32(7), ((1, 0, 0), (-1, 0, 1))), [(16, 8)], [P("i", "j")]),
    ("fft", lambda x, y: jnp.real(jnp.fft.fft(x, axis=1)), [(8, 8, 24)], [P("i", "j")]),
]  # fmt: skip


@pytest.mark.parametrize(("fun", "shapes", "specs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_split_along_windows(fun: Function, shapes: list[tuple[int, ...]], specs: list[P]) -> None:
    mesh = corejax.make_mesh((2, 4), ("i", "j"))
    rng = np.random.default_rng(0)
    values = [rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes] * (3 - len(shapes))
    spread = [corejax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(values, specs * 2, strict=False)]
    got = corejax.tree.leaves(jit(fun)(*spread))
    for ours, right in zip(got, corejax.tree.leaves(fun(*values)), strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(right), rtol=1e-4, atol=1e-3)


def test_batches_stay_spread_beside_windows() -> None:
    mesh = corejax.make_mesh((8,), ("i",))
    x = corejax.device_put(np.ones((8, 2, 16), np.float32), NamedSharding(mesh, P("i")))
    y = np.ones((4, 2, 3), np.float32)
    for fun in (conv(), pool(lax.max, -np.inf, window_dimensions=(1, 1, 2), window_strides=(1, 1, 2), padding="VALID")):
        compiled = jit(fun).lower(x, y).compile()
        assert not corejax.debug.collectives(compiled)
        assert compiled.output_shardings.spec[0] == "i"


@pytest.mark.parametrize("dtype", ["int2", "uint2"])
@pytest.mark.parametrize("fun", [lambda x: x, lambda x: jnp.concatenate([x[3:], x]), lambda x: x.reshape(4, 64)])
def test_integers_of_two_bits_are_not_sent(dtype: str, fun: Function) -> None:
    """XLA on CPUs writes beyond the results of collectives of these. Between bytes there is a way."""
    mesh = corejax.make_mesh((8,), ("i",))
    host = jnp.asarray((np.arange(256).reshape(16, 16) % 3 % 2).astype(np.int8))
    x = corejax.device_put(host.astype(dtype), NamedSharding(mesh, P("i")))
    np.testing.assert_array_equal(
        np.asarray(jit(lambda x: x + x)(x), np.int8), np.asarray(host.astype(dtype) + host.astype(dtype), np.int8)
    )
    with pytest.raises(BackendError, match=rf"wrong numbers if {dtype} values .*x\.astype\('int8'\)"):
        jit(fun, out_shardings=NamedSharding(mesh, P()))(x)
    moved = jit(lambda x: fun(x.astype("int8")), out_shardings=NamedSharding(mesh, P()))(x).astype(dtype)
    np.testing.assert_array_equal(np.asarray(moved, np.int8), np.asarray(fun(host)))
    own = corejax.shard_map(lambda x: jnp.concatenate([x[1:], x[:1]]), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    np.testing.assert_array_equal(np.asarray(jit(own)(x), np.int8), np.asarray(own(x.astype("int8"))))


def test_slices_that_each_device_has_whole() -> None:
    """XLA's partitioner took such a slice's operand, which it remembered as whole, for the operand itself."""
    mesh = corejax.make_mesh((2, 4), ("x", "y"))
    whole = NamedSharding(mesh, P())
    x = np.arange(8, dtype=np.float32) + 1

    def programs(place: Any) -> Any:
        def first(a: Any) -> Any:
            return place(a[:7])

        def called(a: Any) -> Any:
            return corejax.jit(place)(a[:7])

        return lambda a: [
            (first(a), jnp.cumsum(a)),
            (first(a), place(a)),
            a.at[:7].set(first(a) * 2),
            lax.dynamic_update_slice(a, called(a), (1,)),
            (place(lax.dynamic_slice(a, (1,), (5,))), jnp.sort(a)),
        ]

    expected = corejax.tree.leaves(programs(lambda v: v)(jnp.array(x)))
    run = corejax.jit(programs(lambda v: lax.with_sharding_constraint(v, whole)), out_shardings=whole)
    for axes in ("y", ("x", "y")):
        found = corejax.tree.leaves(run(corejax.device_put(x, NamedSharding(mesh, P(axes)))))
        for value, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("axes", [("x", "y"), ("x", None), ("y", None), (None, "y")])
def test_one_window_of_what_is_split_inside(axes: Any) -> None:
    """XLA writes a single window in place, and clamps it to parts that do not have it."""
    mesh = corejax.make_mesh((2, 4), ("x", "y"))
    a = np.arange(128, dtype=np.float32).reshape(8, 16)

    def programs(place: Any) -> Any:
        return lambda a, i: [
            place(a * 1).at[0].add(1.0),
            place(a * 1).at[i].set(-1.0),
            place(a * 1).at[jnp.array([3])].max(999.0),
            place(a * 1).at[2:4, 5].multiply(2.0),
            place(a * 1).at[1, 7].apply(jnp.negative),
            lax.dynamic_update_slice(place(a * 1), a[:2], (i, 3)),
            corejax.grad(lambda b: jnp.sum(place(b * 1)[i] ** 2))(a),
        ]

    expected = programs(lambda v: v)(jnp.array(a), 5)
    run = corejax.jit(programs(lambda v: lax.with_sharding_constraint(v, NamedSharding(mesh, P(*axes)))))
    found = run(corejax.device_put(a, NamedSharding(mesh, P())), 5)
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)
