"""Layers against jax's, for the same keys: shapes, parameters, results and gradients."""

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.example_libraries import optimizers, stax

jax = pytest.importorskip("jax")
jax_stax = pytest.importorskip("jax.example_libraries.stax")


def network(s):
    block = s.serial(s.FanOut(2), s.parallel(s.Dense(6), s.serial(s.Dense(6), s.Tanh)), s.FanInSum)
    images = s.serial(s.Conv(4, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.MaxPool((2, 2), (2, 2)), s.Flatten)
    return s.serial(images, block, s.Softplus, s.Dense(3), s.LogSoftmax)


LAYERS = {
    "network": (network, (2, 8, 8, 3)),
    "transposed convolution": (lambda s: s.ConvTranspose(5, (3, 3), (2, 2), "SAME"), (2, 4, 5, 3)),
    "transposed convolution, one axis": (lambda s: s.Conv1DTranspose(5, (3,), (2,)), (2, 6, 3)),
    "convolution, steps": (lambda s: s.Conv(2, (2, 3), (2, 1)), (2, 5, 6, 3)),
    "average": (lambda s: s.AvgPool((2, 3), (1, 2), "SAME"), (2, 5, 6, 3)),
    "sum": (lambda s: s.SumPool((2,), spec="NCH"), (2, 3, 6)),
    "concatenation": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(2), s.Identity), s.FanInConcat()),
        (4, 3),
    ),
    "norm of rows": (lambda s: s.BatchNorm(axis=0, scale=False), (4, 3)),
    "activations": (lambda s: s.serial(s.Elu, s.LeakyRelu, s.Selu, s.Gelu, s.Sigmoid, s.Exp, s.Softmax), (4, 3)),
    "shape": (lambda s: s.shape_dependent(lambda shape: s.Dense(shape[-1] * 2)), (4, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_those_of_jax(name):
    make, shape = LAYERS[name]
    init, apply = make(stax)
    jax_init, jax_apply = make(jax_stax)
    out_shape, params = init(corejax.random.PRNGKey(1), shape)
    wanted_shape, wanted_params = jax_init(jax.random.PRNGKey(1), shape)
    assert tuple(out_shape) == tuple(wanted_shape)
    for a, b in zip(corejax.tree_util.tree_leaves(params), jax.tree_util.tree_leaves(wanted_params), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    got = corejax.jit(apply)(params, x)
    assert got.shape == tuple(out_shape)
    np.testing.assert_allclose(got, jax_apply(wanted_params, x), rtol=2e-4, atol=2e-5)


def test_dropout():
    _, apply = stax.serial(stax.Dropout(0.8), stax.Dropout(0.5, mode="test"))
    x = np.ones((100, 100), np.float32)
    key = corejax.random.PRNGKey(0)
    out = np.asarray(apply([(), ()], x, rng=key))
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / 0.8)} and abs(out.mean() - 1) < 0.02
    wanted = jax_stax.serial(jax_stax.Dropout(0.8), jax_stax.Identity)[1]([(), ()], x, rng=jax.random.PRNGKey(0))
    np.testing.assert_allclose(out, wanted)
    with pytest.raises(ValueError, match="Dropout: a layer that draws random numbers needs a key"):
        apply([(), ()], x)


def test_shapes_that_do_not_fit():
    init, _ = stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(2), stax.Dense(3)), stax.FanInSum)
    with pytest.raises(ValueError, match=r"FanInSum: the inputs must have one shape, got \[\(4, 2\), \(4, 3\)\]"):
        init(corejax.random.key(0), (4, 3))


@pytest.mark.parametrize("layers", [(stax.Dense,), ([stax.Dense(3), stax.Relu],), (stax.Relu, 3)])
def test_no_layer(layers):
    for combine in (stax.serial, stax.parallel):
        with pytest.raises(TypeError, match=f"{combine.__name__}: layers are pairs .* at position"):
            combine(*layers)


def test_older_names():
    key = corejax.random.key(0)
    for name, args in (("randn", (0.1,)), ("glorot", ())):
        got, wanted = (getattr(s, name)(*args)(k, (3, 2)) for s, k in ((stax, key), (jax_stax, jax.random.key(0))))
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    np.testing.assert_allclose(stax.logsoftmax(jnp.arange(3.0)), jax_stax.logsoftmax(np.arange(3.0)), rtol=1e-6)


def test_a_network_learns():
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    _, params = init(corejax.random.key(0), (-1, 2))
    opt_init, opt_update, get_params = optimizers.adam(0.02)
    xs = np.random.default_rng(0).uniform(-1, 1, (64, 2)).astype(np.float32)
    ys = xs[:, :1] * xs[:, 1:]

    @corejax.jit
    def step(i, state):
        loss, gradient = corejax.value_and_grad(lambda p: jnp.mean((apply(p, xs) - ys) ** 2))(get_params(state))
        return opt_update(i, gradient, state), loss

    state, losses = opt_init(params), []
    for i in range(200):
        state, loss = step(i, state)
        losses.append(float(loss))
    assert losses[-1] < 0.1 * losses[0]
