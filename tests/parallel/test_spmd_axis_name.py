"""`vmap(spmd_axis_name=)`: a batch that is split over axes of a mesh, beside jax's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import P, lax

X = np.random.default_rng(0).standard_normal((8, 4, 6)).astype(np.float32)


def mesh(module: Any) -> Any:
    types = {} if module is corejax else {"axis_types": (module.sharding.AxisType.Auto,) * 2}
    return module.make_mesh((4, 2), ("d", "m"), **types)


def constrained(module: Any, spec: Any) -> Callable[[Any], Any]:
    sharding = module.NamedSharding(mesh(module), spec)
    return lambda x: module.lax.with_sharding_constraint(x * 2, sharding)


def summed(module: Any, spec: Any) -> Any:
    return module.shard_map(lambda x: module.lax.psum(x, "m"), mesh=mesh(module), in_specs=spec("m"), out_specs=spec())


@pytest.mark.parametrize("names", ["d", ("d",)])
@pytest.mark.parametrize("make", [lambda m, spec: constrained(m, spec("m")), summed], ids=["constraint", "shard_map"])
def test_the_batch_lies_where_jaxs_lies(make: Callable[..., Any], names: Any) -> None:
    jax = pytest.importorskip("jax")
    got = corejax.jit(corejax.vmap(make(corejax, P), spmd_axis_name=names))(X)
    want = jax.jit(jax.vmap(make(jax, jax.sharding.PartitionSpec), spmd_axis_name=names))(X)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)
    shards = {s.device.id: s.index for s in got.addressable_shards}
    wanted = {s.device.id: s.index for s in want.addressable_shards}
    assert str(shards) == str(wanted)


def test_a_shard_map_sees_its_part_of_the_batch_through_every_transformation() -> None:
    seen = []

    def block(x: Any) -> Any:
        seen.append(x.shape)
        return lax.psum(x**2, "m")

    f = corejax.shard_map(block, mesh=mesh(corejax), in_specs=P("m"), out_specs=P())
    batched = corejax.vmap(f, in_axes=1, spmd_axis_name="d")
    x = np.swapaxes(X, 0, 1)
    program = corejax.make_jaxpr(batched)(x)
    (eqn,) = program.jaxpr.eqns
    assert eqn.params["jaxpr"].in_avals[0].shape == (2, 2, 6)  # 4 / "m", the batch 8 / "d"
    assert eqn.params["in_specs"] == (P("m", "d"),)

    def loss(x: Any) -> Any:
        return batched(x).sum()

    want = np.sum(X.reshape(8, 2, 2, 6) ** 2, 1)
    for call in (batched, corejax.jit(batched)):
        np.testing.assert_allclose(np.asarray(call(x)), want, rtol=1e-5)
    for grad in (corejax.grad(loss), corejax.jit(corejax.grad(corejax.checkpoint(loss)))):
        np.testing.assert_allclose(np.asarray(grad(x)), 2 * x, rtol=1e-5)


def test_through_loops_branches_and_inner_maps() -> None:
    inner = summed(corejax, P)

    def f(x: Any) -> Any:
        x = lax.scan(lambda c, _: (c + inner(x)[0, 0], None), x, None, length=2)[0]
        return lax.cond(x[0, 0] > 0, corejax.jit(lambda y: corejax.vmap(inner, in_axes=1, out_axes=1)(y)), inner, x)

    split = corejax.vmap(f, spmd_axis_name="d")
    np.testing.assert_allclose(np.asarray(corejax.jit(split)(X)), np.asarray(corejax.vmap(f)(X)), rtol=1e-5)
    assert "PartitionSpec('d', 'm')" in str(corejax.make_jaxpr(split)(X))


@pytest.mark.parametrize("check_vma", [True, False])
def test_a_sum_along_the_axis_adds_up_no_elements_of_the_batch(check_vma: bool) -> None:
    weights = np.arange(X.size, dtype=np.float32).reshape(X.shape)

    def over(f: Any) -> Any:
        return corejax.shard_map(f, mesh=mesh(corejax), in_specs=P("m"), out_specs=P("m"), check_vma=check_vma)

    double = over(lambda x: 2 * x)
    gradient = corejax.grad(lambda x, w: (w * double(x)).sum())
    np.testing.assert_allclose(corejax.vmap(gradient, spmd_axis_name="d")(X, weights), 2 * weights)
    shared = over(lambda x: lax.psum(x, "d"))
    np.testing.assert_allclose(corejax.vmap(shared, spmd_axis_name="d")(X), 4 * X)


@pytest.mark.parametrize("policy", [None, lambda *_, **__: True])
def test_residuals_are_stacked_where_they_differ(policy: Any) -> None:
    f = corejax.shard_map(lambda x: np.float32(3) * x**3, mesh=mesh(corejax), in_specs=P("m"), out_specs=P("m"))
    f = corejax.checkpoint(f, policy=policy)
    gradient = corejax.grad(lambda x: f(x).sum())
    for call in (
        corejax.vmap(gradient, spmd_axis_name="d"),
        corejax.vmap(gradient),
        corejax.jit(corejax.vmap(gradient)),
    ):
        np.testing.assert_allclose(call(X), 9 * X**2, rtol=1e-5)
    second = corejax.vmap(corejax.grad(lambda x: gradient(x).sum()), spmd_axis_name="d")
    np.testing.assert_allclose(second(X), 18 * X, rtol=1e-5)


def _with_its_name() -> Any:
    f = corejax.shard_map(lambda x: lax.psum(x, ("m", "i")), mesh=mesh(corejax), in_specs=P("m"), out_specs=P())
    return corejax.vmap(f, axis_name="i", spmd_axis_name="d")


@pytest.mark.parametrize(
    ("make", "x", "words"),
    [
        (
            lambda: corejax.vmap(constrained(corejax, P("m")), spmd_axis_name="m"),
            X,
            r"with spec P\('m',\).*'m' twice",
        ),
        (lambda: corejax.vmap(constrained(corejax, P("m")), spmd_axis_name="q"), X, "names axis 'q'"),
        (lambda: corejax.vmap(constrained(corejax, P("m")), spmd_axis_name="d"), X[:3], "size 3 there"),
        (lambda: corejax.vmap(summed(corejax, P), spmd_axis_name="m"), X, "'m', which P.* names already"),
        (lambda: corejax.vmap(summed(corejax, P), spmd_axis_name="d"), X[:3], "size 3 is not a multiple of 4"),
        (_with_its_name, X, "uses the mapped axis 'i', but spmd_axis_name splits that"),
        (lambda: corejax.vmap(summed(corejax, P), spmd_axis_name=("d", "d")), X, "has an axis twice"),
    ],
)
def test_what_is_refused(make: Callable[[], Any], x: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()(x)
    assert corejax.extend.transforms.axes_in_scope() == ()
    assert corejax.extend.axis_of_rule() == (None, ())


def test_names_are_hashable() -> None:
    with pytest.raises(TypeError, match=r"vmap: axis_name must be a string or .* got \['i'\] of type list"):
        corejax.vmap(abs, axis_name=["i"])(X)
    with pytest.raises(TypeError, match=r"vmap: spmd_axis_name must be .* got \(\['i'\],\) of type tuple"):
        corejax.vmap(abs, spmd_axis_name=(["i"],))(X)
