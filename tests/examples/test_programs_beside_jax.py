"""Each program under examples/ computes what jax computes where it says corejax."""

from __future__ import annotations

import numpy as np
import pytest

import corejax

from .programs import assert_same, beside_jax

jax = pytest.importorskip("jax")
pytest.importorskip("sklearn")


def test_gaussian_process() -> None:
    ours, theirs = beside_jax("gaussian_process")
    rng = np.random.default_rng(0)
    x, at = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=30)
    with corejax.enable_x64(True), jax.enable_x64(True):
        found = corejax.jit(corejax.value_and_grad(ours.surprise))(ours.initial(3), x, y)
        wanted = jax.jit(jax.value_and_grad(theirs.surprise))(theirs.initial(3), x, y)
        assert_same(found, wanted, 1e-9)
        assert_same(ours.predict(ours.initial(3), x, y, at), theirs.predict(theirs.initial(3), x, y, at), 1e-9)


def test_hierarchical_model() -> None:
    ours, theirs = beside_jax("hierarchical_model")
    found = ours.sample(corejax.random.key(1), 2, 8, 8, 4)
    assert_same(found, theirs.sample(jax.random.key(1), 2, 8, 8, 4), 1e-3, 5e-3)
    assert np.std(np.asarray(found[0]["mean"])) > 0.1  # the chains move

    draws = np.random.default_rng(0).normal(size=(3, 201)).astype(np.float32)
    draws[:, 1:] += 0.8 * draws[:, :-1]
    assert_same(ours.diagnostics(draws), theirs.diagnostics(draws), 1e-4)
    r_hat, effective = ours.diagnostics(draws)
    assert r_hat < 1.05 and 100 < effective < 600
    assert ours.diagnostics(draws + 3 * np.arange(3.0, dtype=np.float32)[:, None])[0] > 1.5  # chains apart


def test_transformer() -> None:
    ours, theirs = beside_jax("transformer")
    text, alphabet = ours.encode(ours.LICENSE.read_text()[:500])
    assert "".join(alphabet[i] for i in text[200:230]) == ours.LICENSE.read_text()[200:230]

    # What it begins with is ours on both sides: jax takes long to compile it.
    first = corejax.tree.map(np.asarray, ours.init(corejax.random.key(2), len(alphabet), width=8))

    def learn(module, library):
        key = library.random.key(3)
        opt_init, step, get_params = module.make_step(10, 1e-2)
        state = opt_init(first)
        losses = []
        for i in range(3):
            state, value = step(i, state, library.random.fold_in(key, i), text, 2, 12)
            losses.append(value)
        return get_params(state), losses

    assert_same(learn(ours, corejax), learn(theirs, jax), 1e-3, 1e-4)


def test_neural_ode() -> None:
    ours, theirs = beside_jax("neural_ode")
    times = np.linspace(0, 0.6, 4, dtype=np.float32)
    seen = np.stack([np.cos(2 * times + phase) for phase in np.arange(4.0)]).astype(np.float32).reshape(2, 4, 2)

    first = corejax.tree.map(np.asarray, ours.init_network(corejax.random.key(2), (-1, 2))[1])

    def learn(module):
        opt_init, step, get_params = module.make_step(10, 1e-2)
        state = opt_init(first)
        losses = []
        for i in range(2):
            state, value = step(i, state, module.pieces_of(seen, 3), times[:3])
            losses.append(value)
        return losses, get_params(state)

    assert_same(learn(ours), learn(theirs), 1e-3, 1e-4)


def test_batch_norm() -> None:
    ours, theirs = beside_jax("batch_norm")
    rng = np.random.default_rng(0)
    images, labels = rng.random((2, 6, 8, 8, 1), np.float32), rng.integers(0, 10, (2, 6)).astype(np.int32)

    def learn(module, library):
        params, statistics = library.jit(lambda key: module.init(key, (3, 4, 4)))(library.random.key(0))
        state = module.State(params, statistics, library.tree.map(np.zeros_like, params))
        state, value = module.epoch(state, images, labels, np.float32(0.1))
        return state, value, module.predict(state, images[0])

    found = learn(ours, corejax)
    assert_same(found, learn(theirs, jax), 1e-3, 1e-4)
    assert np.all(np.asarray(found[0].statistics[0].mean) != 0)  # the running statistics came out of the scan
    assert ours.confusion(np.array([1, 1, 2]), np.array([1, 7, 2]))[1, [1, 7]].tolist() == [1, 1]


def test_principal_components() -> None:
    ours, theirs = beside_jax("principal_components")
    by_class, test, _ = ours.load(0)
    by_class, test = np.asarray(by_class[:, :14]), np.asarray(test[:40])
    images = by_class.reshape(-1, 64)

    def found(module, library):
        components = module.principal_components(images)
        codes = module.encode(components, test, 5)
        quick = module.randomized(library.random.key(0), images, 5)
        return (
            components.variances,
            library.numpy.abs(components.directions[:5]),
            module.decode(components, codes),
            quick.variances,
            module.influence(images, (2, 5)),
            module.classify(by_class, test, 6),
        )

    assert_same(found(ours, corejax), found(theirs, jax), 1e-3, 1e-5)
