"""Types that tell along which manual axes values may differ: derivatives inside of `shard_map`, beside jax's."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cjnp
from corejax import P, lax
from tests.recorded import Recorded

rng = np.random.default_rng(0)
X = rng.normal(size=(16, 3)).astype(np.float32)
W = rng.normal(size=3).astype(np.float32)
M = rng.normal(size=(3, 3)).astype(np.float32)
V = np.arange(16, dtype=np.float32) / 8
RING = [(i, (i + 1) % 8) for i in range(8)]


def _losses(m: Any, jnp: Any) -> dict[str, Any]:
    """Functions of a parameter that is the same everywhere and of a block of data; their derivative is compared."""
    lax = m.lax

    def network(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ w))

    def scanned(w: Any, x: Any, total: Any = lambda y: y) -> Any:
        c, ys = lax.scan(lambda c, row: (jnp.tanh(c * w + total(row * w)), jnp.sum(c)), x[0] * 0, x)
        return jnp.sum(c) + jnp.sum(ys)

    def bent(w: Any, x: Any) -> Any:
        f = m.custom_jvp(lambda w, x: jnp.sin(x @ w))
        f.defjvp(lambda p, t: (f(*p), 2 * jnp.cos(p[1] @ p[0]) * (p[1] @ t[0]) + t[1] @ p[0]))
        return jnp.sum(f(w, x))

    def own(w: Any, x: Any) -> Any:
        f = m.custom_vjp(lambda w, x: jnp.sin(x @ w))
        back = lambda r, ct: (lax.psum((jnp.cos(r[1] @ r[0]) * ct) @ r[1], "i"), 0 * r[1])
        f.defvjp(lambda w, x: (f(w, x), (w, x)), back)
        return jnp.sum(f(w, x))

    return {
        "own loss": network,
        "sum of losses": lambda w, x: lax.psum(network(w, x), "i"),
        "mean of losses": lambda w, x: lax.pmean(network(w, x), "i"),
        "passed on": lambda w, x: jnp.sum(w + x[0]),
        "the same everywhere": lambda w, x: jnp.sum(w**2),
        "sum of what is the same": lambda w, x: jnp.sum(lax.psum(w**2, "i")),
        "sum within": lambda w, x: jnp.sum(jnp.sin(lax.psum(x @ w, "i")) * w[:2] * x[:, 0]),
        "gathered": lambda w, x: jnp.sum(lax.all_gather(x @ w, "i") ** 2),
        "scattered": lambda w, x: jnp.sum(lax.psum_scatter(jnp.tile(w, 8) * x[0, 0], "i", tiled=True) ** 2),
        "sent on": lambda w, x: jnp.sum(lax.ppermute(x @ w, "i", RING) * x[:, 0]),
        "the same sent on": lambda w, x: jnp.sum(lax.ppermute(w, "i", RING) ** 2),
        "exchanged": lambda w, x: jnp.sum(lax.all_to_all(jnp.tile(w, (8, 1)) * x[0, 0], "i", 0, 0) ** 2 * x[0, 1]),
        "index": lambda w, x: jnp.sum(w * lax.axis_index("i")),
        "jitted": m.jit(network),
        "jitted, the same": lambda w, x: m.jit(lambda w, x: (network(w, x), jnp.sum(w**2)))(w, x)[1],
        "scan": scanned,
        "scan with a sum": lambda w, x: scanned(w, x, lambda y: lax.psum(y, "i")),
        "loop": lambda w, x: jnp.sum(lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c * w), x[0])),
        "cond that differs": lambda w, x: lax.cond(x[0, 0] > 0, lambda: jnp.sum(x @ w), lambda: jnp.sum(x[0] * w * 2)),
        "cond": lambda w, x: lax.cond(
            w[0] > 0, lambda w, x: jnp.sum(lax.psum(x @ w, "i")), lambda w, x: jnp.sum(w**2), w, x
        ),
        "checkpoint": m.checkpoint(lambda w, x: jnp.sum(jnp.sin(lax.psum(x @ w, "i")) * (x @ w))),
        "custom_jvp": bent,
        "custom_vjp": own,
        "vmap": lambda w, x: m.vmap(lambda row: jnp.tanh(row @ w))(x).sum(),
        "solve": lambda w, x: jnp.sum(jnp.linalg.solve(np.eye(3, dtype=np.float32) * 3 + M * w[0] / 9, x[0] * w)),
        "keys": lambda w, x: jnp.sum(w * m.random.normal(m.random.fold_in(m.random.key(0), lax.axis_index("i")), (3,))),
        "rows by index": lambda w, x: jnp.sum(w[(x[:, 0] > 0).astype(np.int32)] ** 2 * x[:, 1]),
    }


def _others(m: Any, jnp: Any) -> dict[str, Any]:
    """What else is taken of such functions."""
    losses = _losses(m, jnp)
    own, mean = losses["own loss"], losses["mean of losses"]

    def training(w: Any, x: Any) -> Any:
        def step(w: Any, _: Any) -> Any:
            value, slope = m.value_and_grad(mean)(w, x)
            return w - 0.1 * slope, value

        return m.lax.scan(step, w, None, length=4)

    def varying(w: Any, x: Any) -> Any:
        return m.lax.psum(m.grad(own)(m.lax.pcast(w, "i", to="varying"), x) ** 2, "i")

    def pulled(w: Any, x: Any) -> Any:
        y, back = m.vjp(lambda w: x @ w, w)
        return back(y * 2)[0]

    return {
        "training": training,
        "of a varying value": varying,
        "mean of the sum": lambda w, x: m.lax.pmean(m.grad(own)(w, x), "i"),
        "hessian": m.hessian(own),
        "gradient of the gradient": m.grad(lambda w, x: jnp.sum(m.grad(mean)(w, x) ** 2)),
        "forward over reverse": lambda w, x: m.jvp(lambda w: m.grad(own)(w, x), (w,), (w / 2,)),
        "jacrev": lambda w, x: m.jacrev(lambda w: jnp.tanh(M @ w) * x[0, 0])(w),
        "jacfwd": lambda w, x: m.lax.psum(m.jacfwd(lambda w: jnp.tanh(M @ w) * x[0, 0])(w), "i"),
        "vmap of grad": lambda w, x: m.vmap(m.grad(lambda w, row: jnp.tanh(row @ w)), (None, 0))(w, x).sum(0),
        "vjp": pulled,
        "linear_transpose": lambda w, x: m.linear_transpose(lambda w: x @ w, w)(x[:, 0])[0],
    }


NAMES = list(_losses(corejax, cjnp))
OTHERS = list(_others(corejax, cjnp))
OUTSIDE = ["mean of losses", "sum within", "scan with a sum", "passed on", "sum of what is the same"]


def mesh(m: Any, sizes: tuple[int, ...] = (8,), names: tuple[str, ...] = ("i",)) -> Any:
    types = {} if m is corejax else {"axis_types": (m.sharding.AxisType.Auto,) * len(names)}
    return m.make_mesh(sizes, names, **types)


def mapped(m: Any, body: Any, ins: Any, outs: Any, at: Any = None, **options: Any) -> Any:
    return m.shard_map(body, mesh=at or mesh(m), in_specs=ins, out_specs=outs, **options)


RECORDED = Recorded("varying")


@functools.cache
def results(m: Any) -> dict[str, Any]:
    """What one library gives for everything, as one compiled program."""
    jnp = cjnp if m is corejax else m.numpy
    everything = {name: m.value_and_grad(f) for name, f in _losses(m, jnp).items()}

    def body(w: Any, x: Any) -> Any:
        found = {}
        for name, f in everything.items():
            value, slope = f(w, x)
            found[name] = m.lax.pmean(value, "i"), slope
        return found | {name: f(w, x) for name, f in _others(m, jnp).items()}

    spec = m.sharding.PartitionSpec
    out = m.jit(mapped(m, body, (spec(), spec("i")), spec()))(W, X)
    return m.tree.map(np.asarray, out)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_derivatives_are_jaxs(name: str) -> None:
    def ask() -> list[Any]:
        jax = pytest.importorskip("jax")
        return jax.tree.leaves(results(jax)[name])  # type: ignore[no-any-return]

    same(results(corejax)[name], RECORDED.of(name, ask))


def same(got: Any, wanted: Any) -> None:
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=1e-5)


def test_derivatives_of_such_derivatives_from_outside() -> None:
    jax = pytest.importorskip("jax")

    def outside(m: Any, jnp: Any) -> Any:
        losses, w, x = _losses(m, jnp), jnp.asarray(W), jnp.asarray(X)
        spec = m.sharding.PartitionSpec
        inner = mapped(m, lambda w, x: [m.grad(losses[n])(w, x) for n in OUTSIDE], (spec(), spec("i")), spec())

        def loss(w: Any, x: Any) -> Any:
            return sum(jnp.sum(jnp.sin(y * (k + 1))) for k, y in enumerate(inner(w, x)))

        of_many = m.vmap(inner, (0, None))(jnp.stack([w, 2 * w]), x)
        return m.grad(loss, (0, 1))(w, x), m.jvp(inner, (w, x), (w, x / 2)), of_many

    same(corejax.jit(lambda: outside(corejax, cjnp))(), jax.jit(lambda: outside(jax, jax.numpy))())


def test_several_axes() -> None:
    jax = pytest.importorskip("jax")
    a, b = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(4, 2)).astype(np.float32)

    def everything(m: Any, jnp: Any) -> Any:
        spec = m.sharding.PartitionSpec
        at = mesh(m, (4, 2), ("data", "model"))

        def loss(params: Any, x: Any) -> Any:
            y = m.lax.psum(jnp.tanh(x @ params[0]) @ params[1], "model")
            return m.lax.pmean(jnp.mean(y**2), "data")

        split = (spec(None, "model"), spec("model"))
        step = mapped(m, m.value_and_grad(loss), (split, spec("data")), (spec(), split), at)

        def partly(w: Any, x: Any) -> Any:
            return m.grad(lambda w: m.lax.pmean(jnp.sum((x * w) ** 2), "model") * x[0, 0])(w)

        def whole(v: Any) -> Any:
            return m.grad(lambda v: jnp.sum(m.lax.all_gather(v, "data", tiled=True, to="invarying") ** 3))(v)

        some = mapped(m, partly, (spec(), spec("data", "model")), spec(), at)(W[:1], X[:, :2])
        return step((a, b), X), some, mapped(m, whole, spec("data"), spec("data"), at)(V)

    same(corejax.jit(lambda: everything(corejax, cjnp))(), jax.jit(lambda: everything(jax, jax.numpy))())


def test_values_that_jax_does_not_differentiate() -> None:
    """Names that `vmap` binds inside; a bwd that leaves the sum to the caller; pbroadcast; a shard_map inside."""

    def body(w: Any, x: Any) -> Any:
        named = corejax.grad(
            lambda w: corejax.vmap(lambda row: lax.psum(cjnp.tanh(row @ w), ("b", "i")), axis_name="b")(x).sum() / 2
        )(w)
        f = corejax.custom_vjp(lambda w, x: cjnp.sin(x @ w))
        f.defvjp(lambda w, x: (f(w, x), (w, x)), lambda r, ct: ((cjnp.cos(r[1] @ r[0]) * ct) @ r[1], 0 * r[1]))
        left = corejax.grad(lambda w: cjnp.sum(f(w, x)))(w)
        sent = corejax.grad(lambda w: cjnp.sum(lax.pbroadcast(x @ w, "i", 1)))(w)
        return named, left, sent

    named, left, sent = mapped(corejax, body, (P(), P("i")), P())(W, X)
    same(named, X.T @ (1 - np.tanh(X @ W) ** 2))
    same(left, X.T @ np.cos(X @ W))
    same(sent, 8 * X[2:4].sum(0))
    at = mesh(corejax, (4, 2), ("i", "j"))

    def outer(w: Any, x: Any) -> Any:
        inner = corejax.shard_map(
            lambda w, x: lax.psum(cjnp.sum((x * w) ** 2), "j"),
            in_specs=(P("j"), P(None, "j")),
            out_specs=P(),
            axis_names={"j"},
        )
        return corejax.grad(inner)(w, x)

    nested = mapped(corejax, outer, (P(), P("i")), P(), at, axis_names={"i"})
    same(corejax.jit(nested)(W[:2], X[:, :2]), 2 * W[:2] * (X[:, :2] ** 2).sum(0))


def test_without_compiling_and_without_the_check() -> None:
    losses = _losses(corejax, cjnp)
    names = ["own loss", "mean of losses", "scan with a sum", "gathered"]

    def body(w: Any, x: Any) -> Any:
        return [corejax.grad(losses[n])(w, x) for n in names]

    with corejax.disable_jit():
        found = mapped(corejax, body, (P(), P("i")), P())(W, X)
    same(found, [results(corejax)[n][1] for n in names])
    each = mapped(corejax, lambda w, x: body(w, x)[0][None], (P(), P("i")), P("i"), check_vma=False)(W, X)
    slope = (1 - np.tanh(X @ W) ** 2)[:, None] * X
    same(each, slope.reshape(8, 2, 3).sum(1))


def test_types_tell() -> None:
    seen = {}

    def body(w: Any, x: Any) -> Any:
        y = x @ w
        seen.update(
            w=w, x=x, y=y, sum=lax.psum(y, "i"), index=lax.axis_index("i"), cast=lax.pcast(w, "i", to="varying")
        )
        zero = cjnp.zeros(2)
        carry, _ = lax.scan(lambda c, row: (c + row[:2], None), zero, x)
        ended = lax.while_loop(lambda c: c[0] < x[0, 0], lambda c: (c[0] + 1, c[1] + 1), (0.0, 0.0))
        seen.update(zero=zero, carry=carry, ended=ended[1], chosen=lax.cond(x[0, 0] > 0, lambda: 1.0, lambda: 2.0))
        return lax.pmean(y, "i")

    program = corejax.make_jaxpr(mapped(corejax, body, (P(), P("i")), P()))(W, X)
    told = {name: set(corejax.typeof(value).vma) for name, value in seen.items()}
    differ = {name for name, vma in told.items() if vma}
    assert differ == {"x", "y", "index", "cast", "carry", "ended", "chosen"}
    assert all(told[name] == {"i"} for name in differ)
    assert "f32[2,3]{V:i}" in str(program)
    assert repr(corejax.typeof(seen["y"])) == "ShapedArray(float32[2]{V:i})"
    assert not program.out_avals[0].vma
    assert str(corejax.ir.parse_jaxpr(str(program.jaxpr.eqns[0].params["jaxpr"]))) == str(
        program.jaxpr.eqns[0].params["jaxpr"]
    )


def test_nothing_is_summed_where_devices_do_different_things() -> None:
    """A sum in a loop that some devices have left would wait for them."""

    def body(w: Any, x: Any) -> Any:
        row, count = x[0], lax.axis_index("i") % 3 + 1
        slope = lambda factor: corejax.grad(lambda w: cjnp.sum(w * row * factor))(w)
        times = lax.fori_loop(0, count, lambda i, c: c + slope(1.0), cjnp.zeros(3))
        _, until = lax.while_loop(lambda c: c[0] < count, lambda c: (c[0] + 1, c[1] + slope(2.0)), (0, cjnp.zeros(3)))
        chosen = lax.cond(count > 1, lambda: slope(3.0), lambda: slope(4.0) + w)
        return times[None], until[None], chosen[None], slope(5.0)

    found = mapped(corejax, body, (P(), P("i")), (P("i"), P("i"), P("i"), P()))(W, X)
    rows, counts = X[::2], (np.arange(8) % 3 + 1)[:, None]
    same(found[:2], [rows * counts, 2 * rows * counts])
    same(found[2], np.where(counts > 1, 3 * rows, 4 * rows + W))
    same(found[3], 5 * rows.sum(0))
