"""Optimisers against jax's, step by step."""

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.example_libraries import optimizers

jax_optimizers = pytest.importorskip("jax.example_libraries.optimizers")

PARAMS = {"w": np.arange(6, dtype=np.float32).reshape(2, 3) / 5, "b": np.array([0.7], np.float32)}
ARGUMENTS = {
    "sgd": (0.1,),
    "momentum": (0.1, 0.9),
    "nesterov": (0.1, 0.9),
    "adagrad": (0.1,),
    "rmsprop": (0.1,),
    "rmsprop_momentum": (0.1,),
    "adam": (lambda i: 0.1 / (i + 1),),
    "adamax": (0.1,),
    "sm3": (0.1,),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_steps_are_those_of_jax(name):
    states = []
    for module in (optimizers, jax_optimizers):
        init, update, get_params = getattr(module, name)(*ARGUMENTS[name])
        state = init(PARAMS)
        for i in range(4):
            params = get_params(state)
            state = update(i, {"w": 2 * params["w"], "b": 3 * params["b"]}, state)
        states.append(get_params(state))
    for key, wanted in states[1].items():
        np.testing.assert_allclose(states[0][key], wanted, rtol=1e-5, atol=1e-6)


def test_states_go_through_jit_and_scan():
    init, update, get_params = optimizers.adam(0.05)

    def loss(params):
        return jnp.sum((params["w"] - 1) ** 2) + jnp.sum(params["b"] ** 2)

    def step(state, i):
        return update(i, corejax.grad(loss)(get_params(state)), state), loss(get_params(state))

    state, losses = corejax.jit(lambda s: corejax.lax.scan(step, s, jnp.arange(100)))(init(PARAMS))
    assert float(losses[-1]) < 1e-2 * float(losses[0])
    one = update(0, corejax.grad(loss)(PARAMS), init(PARAMS))
    compiled = corejax.jit(update)(0, corejax.grad(loss)(PARAMS), init(PARAMS))
    np.testing.assert_allclose(get_params(one)["w"], get_params(compiled)["w"], rtol=1e-6)
    assert get_params(state).keys() == PARAMS.keys()


def test_scalars_have_a_state_too():
    init, update, get_params = optimizers.sm3(0.1)
    assert float(get_params(update(0, 2.0, init(1.0)))) == pytest.approx(1.0 - 0.1 * 0.1)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("constant", (0.1,)),
        ("exponential_decay", (0.1, 10, 0.9)),
        ("inverse_time_decay", (0.1, 10, 0.9)),
        ("inverse_time_decay", (0.1, 10, 0.9, True)),
        ("polynomial_decay", (0.1, 10, 0.01, 2.0)),
        ("piecewise_constant", ([2, 5], [1.0, 2.0, 3.0])),
    ],
)
def test_schedules(name, arguments):
    ours, theirs = (getattr(module, name)(*arguments) for module in (optimizers, jax_optimizers))
    for i in (0, 2, 3, 10, 25):
        np.testing.assert_allclose(ours(i), theirs(i), rtol=1e-6)


def test_gradients_are_clipped():
    tree = {"a": np.array([3.0, 0.0], np.float32), "b": np.float32(4.0)}
    assert float(optimizers.l2_norm(tree)) == 5.0
    np.testing.assert_allclose(optimizers.clip_grads(tree, 1.0)["a"], [0.6, 0.0], rtol=1e-6)
    np.testing.assert_array_equal(optimizers.clip_grads(tree, 10.0)["b"], 4.0)
    np.testing.assert_array_equal(optimizers.clip_grads({"a": np.zeros(2, np.float32)}, 1.0)["a"], [0, 0])


def test_states_are_unpacked_for_the_disk():
    init, update, get_params = optimizers.adam(0.1)
    state = update(0, PARAMS, init(PARAMS))
    marked = optimizers.unpack_optimizer_state(state)
    assert marked.keys() == PARAMS.keys() and isinstance(marked["w"], optimizers.JoinPoint)
    again = optimizers.pack_optimizer_state(marked)
    np.testing.assert_array_equal(get_params(again)["w"], get_params(state)["w"])
    np.testing.assert_array_equal(get_params(update(1, PARAMS, again))["w"], get_params(update(1, PARAMS, state))["w"])
    with pytest.raises(TypeError, match="the leaves are JoinPoints, got 1"):
        optimizers.pack_optimizer_state({"w": 1})


def test_errors():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="sgd: gradients have the structure of the parameters"):
        update(0, {"w": 1.0}, init(PARAMS))
    with pytest.raises(TypeError, match="a step size is a number or a function"):
        optimizers.adam([0.1, 0.2])
    with pytest.raises(ValueError, match=r"one more than boundaries, got shapes \(2,\) and \(2,\)"):
        optimizers.piecewise_constant([1, 2], [1.0, 2.0])

    @optimizers.optimizer
    def forgetful():
        return lambda x: (x, x), lambda i, g, s: s[0], lambda s: s[0]

    init, update, _ = forgetful()
    with pytest.raises(TypeError, match="forgetful: update returns a state of another structure than init"):
        update(0, PARAMS, init(PARAMS))
