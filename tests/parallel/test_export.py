"""Programs over several devices as artifacts: called in other processes, on other meshes, differentiated, refused."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import NamedSharding, P, export, lax, random

X = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
EXPECTED = np.sin(X) @ W


def mesh(*sizes: int) -> Any:
    return corejax.make_mesh(sizes, ("x", "y")[: len(sizes)])


def mapped() -> Any:
    """By `shard_map`, told where arguments and results are."""
    over = mesh(4, 2)

    def body(x: Any, w: Any) -> Any:
        return lax.psum(jnp.sin(x) @ w, "y")

    f = corejax.shard_map(body, mesh=over, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
    return corejax.jit(
        lambda x, w: f(x, w),
        in_shardings=(NamedSharding(over, P("x")), NamedSharding(over, P())),
        out_shardings=NamedSharding(over, P("x")),
    )


def exported(order: int = 2) -> export.Exported:
    return export.deserialize(export.export(mapped())(X, W).serialize(vjp_order=order))


def test_what_an_artifact_says() -> None:
    made = export.export(mapped())(X, W)
    for each in (made, export.deserialize(made.serialize())):
        assert each.nr_devices == 8 and each.calling_convention_version == 2
        assert [str(s) for s in each.in_shardings_hlo] == [
            "{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}",
            "{replicated}",
        ]
        assert each.in_shardings_jax(mesh(4, 2))[0] == NamedSharding(mesh(4, 2), P("x"))
        assert each.out_shardings_jax(mesh(4, 2)) == (NamedSharding(mesh(4, 2), P("x")),)
        assert len(each.out_shardings_hlo) == 1
        assert 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in each.mlir_module()
    alone = export.export(corejax.jit(jnp.sin))(X)
    assert alone.nr_devices == 1 and alone.in_shardings_hlo == (None,) and alone.calling_convention_version == 1
    assert alone.in_shardings_jax(mesh(1)) == (None,)


def test_arguments_say_the_devices() -> None:
    f, over = exported(), mesh(8)
    x, w = (corejax.device_put(v, s) for v, s in zip((X, W), f.in_shardings_jax(over), strict=True))
    for call in (f.call, corejax.jit(f.call), lambda x, w: corejax.jit(lambda x: f.call(x / 2 * 2, w) * 1.0)(x)):
        y = call(x, w)
        np.testing.assert_allclose(y, EXPECTED, rtol=1e-5, atol=1e-5)
        assert y.addressable_shards[0].data.shape == (2, 3)


def test_the_context_says_the_devices() -> None:
    f = exported()
    with corejax.set_mesh(mesh(8)):
        np.testing.assert_allclose(f.call(X, W), EXPECTED, rtol=1e-5, atol=1e-5)
        both = corejax.jit(lambda x, w: f.call(x, w) + f.call(2 * x, w))
        np.testing.assert_allclose(both(X, W), EXPECTED + np.sin(2 * X) @ W, rtol=1e-5, atol=1e-5)
        batched = corejax.vmap(f.call, in_axes=(0, None))(np.stack([X, X + 1]), W)
        np.testing.assert_allclose(batched[1], np.sin(X + 1) @ W, rtol=1e-5, atol=1e-5)


def test_derivatives() -> None:
    f = exported()
    with corejax.set_mesh(mesh(8)):
        gradient = corejax.grad(lambda x: jnp.sum(f.call(x, W)))
        expected = np.cos(X) * W.sum(1)
        np.testing.assert_allclose(gradient(X), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(corejax.jit(gradient)(X), expected, rtol=1e-5, atol=1e-5)
        _, pushed = corejax.jvp(lambda x: f.call(x, W), (X,), (np.ones_like(X),))
        np.testing.assert_allclose(pushed, np.cos(X) @ W, rtol=1e-5, atol=1e-5)
    pulled = f.vjp()
    assert pulled.nr_devices == 8 and pulled.has_vjp()
    assert [str(s) for s in pulled.in_shardings_hlo] == [*map(str, (*f.in_shardings_hlo, *f.out_shardings_hlo))]
    assert [*map(str, pulled.out_shardings_hlo)] == [*map(str, f.in_shardings_hlo)]


def test_by_arguments_that_are_spread_alone() -> None:
    """No mesh in the program: its arguments are over several devices when it is exported."""
    over = NamedSharding(mesh(8), P("x"))
    f = export.export(corejax.jit(lambda x: {"sum": jnp.sum(x), "x": x * 2}))(corejax.device_put(X, over))
    assert f.nr_devices == 8
    found = f.call(corejax.device_put(X, over))
    np.testing.assert_allclose(found["sum"], X.sum(), rtol=1e-5)
    np.testing.assert_array_equal(found["x"], 2 * X)
    assert found["x"].sharding == over


def test_a_mesh_in_another_order_and_one_without_devices() -> None:
    def f(over: Any) -> Any:
        return corejax.shard_map(lambda x: x + lax.axis_index("x"), mesh=over, in_specs=P("x"), out_specs=P("x"))

    turned = corejax.sharding.Mesh(np.array(corejax.devices())[::-1], ("x",))
    inside = corejax.jit(lambda x: f(turned)(x), in_shardings=NamedSharding(mesh(8), P("x")))
    abstract = corejax.jit(f(corejax.sharding.AbstractMesh((8,), ("x",))))
    for g in (inside, abstract):
        loaded = export.deserialize(export.export(g)(X).serialize())
        with corejax.set_mesh(mesh(8)):
            np.testing.assert_allclose(loaded.call(X), X + np.arange(8)[:, None], rtol=1e-6)


CALLER = """
import sys
import numpy as np
import corejax
import corejax.numpy as jnp
from corejax import P, NamedSharding, export

f = export.deserialize(open(sys.argv[1], "rb").read())
x, w = np.load(sys.argv[2]), np.load(sys.argv[3])
if len(corejax.devices()) == 8:
    with corejax.set_mesh(corejax.make_mesh((2, 4), ("a", "b"))):
        y = f.call(x, w)
        g = corejax.jit(corejax.grad(lambda x: jnp.sum(f.call(x, w))))(x)
    assert len(y.sharding.device_set) == 8 and y.addressable_shards[0].data.shape == (2, 3), y.sharding
    np.testing.assert_allclose(y, np.sin(x) @ w, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(g, np.cos(x) * w.sum(1), rtol=1e-5, atol=1e-5)
    print("called")
else:
    try:
        with corejax.set_mesh(corejax.make_mesh((2,), ("a",))):
            f.call(x, w)
    except ValueError as error:
        print(error)
    over = NamedSharding(corejax.make_mesh((2,), ("a",)), P("a"))
    try:
        f.call(corejax.device_put(x, over), w)
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("devices", "printed"),
    [
        (8, ["called"]),
        (
            2,
            [
                "the program is for an abstract mesh of 8 devices",
                "is for 8 devices but is called in a program on 2; put its",
            ],
        ),
    ],
)
def test_in_another_process(tmp_path: pathlib.Path, devices: int, printed: list[str]) -> None:
    artifact, *values = (tmp_path / name for name in ("f.bin", "x.npy", "w.npy"))
    artifact.write_bytes(export.export(mapped())(X, W).serialize(vjp_order=1))
    for path, value in zip(values, (X, W), strict=True):
        np.save(path, value)
    environment = os.environ | {"COREJAX_NUM_CPU_DEVICES": str(devices)}
    program = [sys.executable, "-c", CALLER, str(artifact), *map(str, values)]
    done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    for line, expected in zip(done.stdout.strip().splitlines(), printed, strict=True):
        assert expected in line


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.call(X, W), r"the program is for an abstract mesh of 8 devices.*set_mesh\(mesh\)"),
        (
            lambda f: f.call(corejax.device_put(X, corejax.devices()[1]), W),
            r"the exported function .* is for 8 devices but is called in a program on 1; .*in_shardings_jax\(mesh\)",
        ),
        (
            lambda f: corejax.shard_map(lambda x: f.call(x, W), mesh=mesh(8), in_specs=P(), out_specs=P())(X),
            "is for 8 devices but is called by one of them, in shard_map or pmap",
        ),
        (lambda f: f.in_shardings_jax(mesh(4)), r"is for 8 devices, but Mesh\('x': 4.* has 4"),
        (
            lambda f: corejax.grad(lambda x: jnp.sum(f.call(x, W)))(X),
            "the program is for an abstract mesh of 8 devices",
        ),
    ],
)
def test_other_numbers_of_devices(call: Callable[..., Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(exported(1))


def test_symbols_are_for_one_device() -> None:
    (size,) = export.symbolic_shape("8*n")
    with pytest.raises(NotImplementedError, match=r"symbolic sizes cannot be partitioned over 8 devices"):
        export.export(corejax.jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh(8), P(None, "x")))))(
            corejax.ShapeDtypeStruct((size, 8), np.float32)
        )


def test_keys_in_parts() -> None:
    over = NamedSharding(mesh(4), P("x"))
    keys = random.split(random.key(0), 8)
    f = corejax.jit(corejax.vmap(lambda key: random.split(key)[0]), in_shardings=over, out_shardings=over)
    found = export.deserialize(export.export(f)(keys).serialize())
    out = found.call(corejax.device_put(keys, *found.in_shardings_jax(mesh(4))))
    assert out.sharding == over
    np.testing.assert_array_equal(random.key_data(out), random.key_data(f(keys)))
