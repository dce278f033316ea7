"""`pmap` beside jax's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cjnp
from corejax import lax
from tests.value_types import Stacked, dense, matrix, symmetric

X = np.arange(12.0, dtype=np.float32).reshape(4, 3) / 10 + 1

CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "collective": lambda m, jnp, x: m.pmap(lambda a: a / m.lax.psum(a, "i"), axis_name="i")(x),
    "axes": lambda m, jnp, x: m.pmap(lambda a, b: (a + b, a.sum()), in_axes=(1, None), out_axes=(1, 0))(
        x.reshape(3, 4), jnp.ones(3)
    ),
    "out axis None": lambda m, jnp, x: m.pmap(lambda a: m.lax.psum(a, "i"), axis_name="i", out_axes=None)(x),
    "in jit": lambda m, jnp, x: m.jit(lambda y: m.pmap(lambda a: a / m.lax.psum(a, "i"), axis_name="i")(y) * 2)(x),
    "grad": lambda m, jnp, x: m.grad(
        lambda y: jnp.sum(jnp.sin(m.pmap(lambda a: a * m.lax.psum(jnp.sin(a), "i"), axis_name="i")(y)))
    )(x),
    "grad in jit": lambda m, jnp, x: m.jit(
        m.grad(lambda y: jnp.sum(jnp.sin(m.pmap(lambda a: a * m.lax.psum(jnp.sin(a), "i"), axis_name="i")(y))))
    )(x),
    "vmap": lambda m, jnp, x: m.vmap(m.pmap(lambda a: a * m.lax.psum(a, "i"), axis_name="i"))(jnp.stack([x, x + 1])),
    "scan around": lambda m, jnp, x: m.lax.scan(
        lambda c, _: (m.pmap(lambda a: a * m.lax.psum(jnp.sin(a), "i") / 3, axis_name="i")(c), None), x, None, length=3
    )[0],
    "scan inside": lambda m, jnp, x: m.pmap(
        lambda a: m.lax.scan(lambda c, _: (c / 2 + m.lax.pmean(c, "i"), None), a, None, length=3)[0], axis_name="i"
    )(x),
    "static argument": lambda m, jnp, x: m.pmap(lambda a, n: a**n, static_broadcasted_argnums=1)(x, 3),
    "pytrees": lambda m, jnp, x: m.pmap(lambda d: {"a": d["a"] * 2, "b": (d["b"],)}, in_axes=({"a": 0, "b": None},))(
        {"a": x, "b": 3.0}
    ),
    "grad inside": lambda m, jnp, x: m.pmap(m.grad(lambda a: jnp.sum(m.lax.psum(jnp.sin(a), "i") ** 2)), axis_name="i")(
        x
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_jaxs(name: str) -> None:
    jax = pytest.importorskip("jax")
    got, want = CASES[name](corejax, cjnp, cjnp.asarray(X)), CASES[name](jax, jax.numpy, jax.numpy.asarray(X))
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


def test_the_documents_example() -> None:
    def func13(arr: Any, extra: Any) -> Any:
        def inner(x: Any) -> Any:
            return (x + extra + cjnp.ones(1)) / lax.psum(x, axis_name="rows")

        return corejax.pmap(inner, axis_name="rows")(arr)

    (eqn,) = corejax.make_jaxpr(func13)(cjnp.ones((1, 3)), 5.0).jaxpr.eqns
    assert eqn.primitive.name == "xla_pmap"
    assert eqn.params["axis_name"] == "rows" and eqn.params["axis_size"] == 1 and eqn.params["name"] == "inner"
    assert eqn.params["mapped_invars"] == (False, True), "extra is the same for all, arr is mapped"
    inner = [e.primitive.name for e in eqn.params["call_jaxpr"].eqns]
    assert inner.count("psum") == 1 and inner[-1] == "div"
    np.testing.assert_allclose(np.asarray(func13(cjnp.ones((1, 3)), 5.0)), np.full((1, 3), 7.0))


def test_each_element_is_on_a_device() -> None:
    out = corejax.pmap(lambda a: a * 2, devices=corejax.devices()[4:])(X)
    assert [shard.device.id for shard in out.addressable_shards] == [4, 5, 6, 7]
    assert "Array(" in repr(out)


def test_nested_is_what_vmap_of_vmap_is() -> None:
    def nested(m: Any) -> Any:
        def both(b: Any) -> Any:
            return b + lax.psum(b, "i") + 100 * lax.psum(b, "j")

        return m(lambda a: m(both, axis_name="j")(a), axis_name="i")(X.reshape(2, 2, 3))

    np.testing.assert_allclose(np.asarray(nested(corejax.pmap)), np.asarray(nested(corejax.vmap)), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: corejax.pmap(lambda a: a)(np.ones(9)), ValueError, "9 elements, but there are 8 devices"),
        (lambda: corejax.pmap(lambda a, b: a)(np.ones(4), np.ones(3)), ValueError, r"one size, got sizes \[4, 3\]"),
        (lambda: corejax.pmap(lambda a: a, out_axes=None)(X), ValueError, "out_axes is None for result 0"),
        (lambda: corejax.pmap(lambda a: a, in_axes=2)(X), ValueError, "in_axes has 2"),
        (lambda: corejax.pmap(lambda a: a, in_axes="x")(X), TypeError, "in_axes are integers"),
        (lambda: corejax.pmap(lambda a: a, in_axes=None)(X), ValueError, "axis_size is not given"),
        (lambda: corejax.pmap(lambda a: a, axis_size=3)(X), ValueError, "axis_size and mapped axes"),
        (lambda: corejax.pmap(lambda a: a, devices=corejax.devices()[:2])(X), ValueError, "2 devices"),
        (lambda: corejax.pmap(lambda a: a, axis_name=3)(X), TypeError, "axis_name is a string"),
        (lambda: corejax.pmap(3), TypeError, "pmap transforms a function"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
    assert corejax.extend.transforms.axes_in_scope() == ()


def test_it_keeps_the_function() -> None:
    def f(x: Any) -> Any:
        return x * 2

    assert corejax.pmap(f).__wrapped__ is f


def test_keys_used_twice_are_found():
    random = pytest.importorskip("corejax.random")
    mesh = corejax.make_mesh((4,), ("i",))

    def draw(keys):
        return corejax.vmap(random.normal)(keys)

    along = corejax.sharding.PartitionSpec("i")
    blocks = corejax.shard_map(draw, mesh=mesh, in_specs=along, out_specs=along)
    with corejax.debug_key_reuse(True):
        for f in (corejax.pmap(random.normal), corejax.jit(blocks)):
            keys = corejax.device_put(random.split(random.key(0), 4), corejax.sharding.NamedSharding(mesh, along))
            f(keys)
            with pytest.raises(corejax.errors.KeyReuseError):
                random.bits(keys[0])


def test_no_devices() -> None:
    with pytest.raises(ValueError, match="pmap of <lambda>: devices is empty"):
        corejax.pmap(lambda x: x, devices=[])


# -- values that are stored in other arrays ----------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit], ids=["plain", "jit"])
def test_values_and_keys(wrap: Callable[..., Any]) -> None:
    batch, shared = corejax.vmap(symmetric)(matrix(4, 3, 3)), symmetric(matrix(3, 3, seed=1))
    keys = corejax.random.split(corejax.random.key(0), 4)

    def f(s: Any, key: Any, other: Any) -> Any:
        total = lax.psum(dense(s), "i")
        return symmetric(total @ dense(other) + corejax.random.normal(key)), dense(s) @ dense(shared), key, other

    axes = {"in_axes": (0, 0, None), "out_axes": (0, 1, 0, None), "axis_name": "i"}
    want = corejax.vmap(f, **axes)(batch, keys, shared)
    got = wrap(corejax.pmap(f, **axes))(batch, keys, shared)
    for i in (0, 3):
        assert got[i].aval is want[i].aval
        np.testing.assert_allclose(got[i].parts[0], want[i].parts[0], rtol=1e-5)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5)
    np.testing.assert_array_equal(corejax.random.key_data(got[2]), corejax.random.key_data(keys))
    assert len(got[0].parts[0].devices()) == 4


def test_gradients_of_values() -> None:
    batch = corejax.vmap(symmetric)(matrix(4, 3, 3))
    loss = lambda mapped: lambda b: cjnp.sum(mapped(lambda s: cjnp.sum(cjnp.sin(dense(s))))(b))
    got, want = (corejax.grad(loss(mapped))(batch) for mapped in (corejax.pmap, corejax.vmap))
    assert got.aval is want.aval
    np.testing.assert_allclose(got.parts[0], want.parts[0], rtol=1e-6)


def test_parts_whose_axes_stand_elsewhere() -> None:
    x = matrix(4, 2)
    value = lax.pack(Stacked(x.shape, x.dtype), x, cjnp.stack([x, 2 * x]))
    one, two = lax.unpack(corejax.pmap(lambda v: lax.pack(v.aval, *(3 * part for part in lax.unpack(v))))(value))
    np.testing.assert_array_equal(one, 3 * x)
    np.testing.assert_array_equal(two, np.stack([3 * x, 6 * x]))
