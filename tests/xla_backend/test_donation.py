"""Donated arguments: their memory is used, the arrays are gone, and who uses them is told where they went."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import Array, grad, jit, lax, vmap

pytest.importorskip("jaxlib")

SHAPE = (300, 300)


def on_device(x: Any) -> Array:
    """An array whose memory is XLA's own."""
    return jit(lambda x: x + 0)(x)


def address(x: Array) -> int:
    return x.unsafe_buffer_pointer()


def test_memory_is_reused_and_arrays_are_gone() -> None:
    @jit
    def unrelated(x: Any) -> Any:
        return x * 2

    step = jit(lambda params, g: {k: params[k] - 0.1 * g[k] for k in params}, donate_argnums=0)
    grads = {"w": np.ones(SHAPE, np.float32), "b": np.ones(3, np.float32)}
    params = {"w": on_device(grads["w"]), "b": on_device(grads["b"])}
    for _ in range(3):  # the first call, and calls that go through the dispatcher
        was, old = address(params["w"]), params
        np.asarray(old["w"])  # a view that nobody else holds is no reason to copy
        params = step(params, grads)
        assert address(params["w"]) == was
        assert old["w"].is_deleted() and old["b"].is_deleted() and old["w"].shape == SHAPE
    np.testing.assert_allclose(np.asarray(params["b"]), np.full(3, 0.7), rtol=1e-6)
    for use in (
        lambda: old["w"] + 1,
        lambda: np.asarray(old["w"]),
        lambda: unrelated(old["w"]),
        lambda: repr(old["w"]),
    ):
        with pytest.raises(
            RuntimeError, match=r"deleted at .*test_donation.py.*donated to the jitted function <lambda>"
        ):
            use()


def test_host_values() -> None:
    """Arrays of the host are gone too; NumPy arrays, which are the caller's, are not; views keep their values."""
    f = jit(lambda x: x * 2, donate_argnums=0)
    given = np.float32([1, 2, 3])
    for _ in range(2):
        x = corejax.lax.mul(given, 1.0)
        view = np.asarray(x)
        np.testing.assert_array_equal(f(x), 2 * given)
        assert x.is_deleted()
        np.testing.assert_array_equal(view, given)
        np.testing.assert_array_equal(f(given), 2 * given)
        np.testing.assert_array_equal(given, [1, 2, 3])


def test_by_name_by_negative_number_and_with_static_arguments() -> None:
    def f(n: int, x: Any, *, y: Any) -> Any:
        return x * n, y + n

    for options in ({"donate_argnames": "y"}, {"donate_argnames": ("x", "y")}, {"donate_argnums": -1}):
        g = jit(f, static_argnums=0, **options)
        for _ in range(2):
            x, y = on_device(np.ones(3)), on_device(np.ones(4))
            g(2, x, y=y)
            assert y.is_deleted() == ("donate_argnames" in options)
            assert x.is_deleted() == (options != {"donate_argnames": "y"})


def test_methods_and_decorated_methods() -> None:
    class Model:
        @corejax.jit
        def plain(self: Any) -> Any:
            return self

        def __init__(self) -> None:
            self.update = jit(self._update, donate_argnums=0)

        def _update(self, x: Any) -> Any:
            return x + 1

    model, x = Model(), on_device(np.ones(3))
    np.testing.assert_array_equal(model.update(x), [2, 2, 2])
    assert x.is_deleted()


def test_what_no_result_can_take_stays() -> None:
    f = jit(lambda x, y: (lax.reduce_sum(x, (0,)), y), donate_argnums=(0, 1))
    x, y = on_device(np.ones(3)), on_device(np.ones((2, 2)))
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable in jit .*: float64\[3\]") as caught:
        f(x, y)
    assert caught[0].filename == __file__
    assert not x.is_deleted() and y.is_deleted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unused = jit(lambda x, y: y * 2, donate_argnums=0)
        unused(x, 1.0)
    assert not x.is_deleted()


def test_one_array_twice() -> None:
    f = jit(lambda x, y: x + y, donate_argnums=0)
    x = on_device(np.ones(3))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"jit of <lambda>: a donated array is passed a second time"):
            f(x, x)
    both = jit(lambda x, y: (x, y), donate_argnums=(0, 1))
    with pytest.raises(ValueError, match="second time"):
        both(x, x)
    np.testing.assert_array_equal(x, np.ones(3))


@pytest.mark.parametrize("make", [on_device, jnp.array, lambda x: corejax.device_put(x, corejax.devices()[0])])
@pytest.mark.parametrize(
    "copied", [Array.copy, jnp.copy, jnp.array, copy.deepcopy, lambda x: jnp.asarray(x, copy=True)]
)
def test_a_copy_stays(make: Any, copied: Any) -> None:
    """An average beside the parameters, a target network: what an error says to do."""
    step = jit(lambda x: x * 2, donate_argnums=0)
    pair = jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))
    ones = np.ones(SHAPE, np.float32)
    for seen in (False, True):
        for which in (0, 1):
            x = make(ones)
            both = x, copied(x)
            if seen:
                np.asarray(x)
            assert both[1].devices() <= x.devices() and (both[1].dtype, both[1].weak_type) == (x.dtype, x.weak_type)
            np.testing.assert_array_equal(step(both[which]), 2 * ones)
            assert not both[1 - which].is_deleted()
            np.testing.assert_array_equal(both[1 - which], ones)
    x = make(ones)
    np.testing.assert_array_equal(pair(x, copied(x))[1], 2 * ones)
    keys = corejax.random.split(corejax.random.key(0))
    assert copied(keys) is not keys and copied(keys).dtype == keys.dtype


def test_traced_values_are_their_own_copies() -> None:
    constant = jnp.ones(3)
    program = corejax.make_jaxpr(lambda x: (jnp.array(x) + constant.copy()) * jnp.array(constant))(1.0)
    assert [eqn.primitive.name for eqn in program.jaxpr.eqns] == ["add", "mul"] and len(program.consts) == 1


def test_nothing_is_donated_inside_of_transformations() -> None:
    f = jit(lambda x: lax.sin(x) * 2.0, donate_argnums=0)
    x = on_device(np.ones(3))
    expected = 2 * np.sin(np.ones(3))
    np.testing.assert_allclose(jit(lambda x: f(x) + 0)(x), expected)
    np.testing.assert_allclose(vmap(f)(x), expected)
    grad(lambda x: lax.reduce_sum(f(x), (0,)))(x)
    f.lower(x)
    assert not x.is_deleted()
    f(x)
    assert x.is_deleted()


def test_a_failing_call_leaves_the_arrays() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    x = on_device(np.ones(3))
    with pytest.raises(KeyError, match="mine"):
        jit(f, donate_argnums=0)(x)
    np.testing.assert_array_equal(x, np.ones(3))


def test_compiled_ahead_of_time() -> None:
    compiled = jit(lambda x, y: x + y, donate_argnums=1).lower(np.ones(3), np.ones(3)).compile()
    x, y = on_device(np.ones(3)), on_device(np.ones(3))
    np.testing.assert_array_equal(compiled(x, y), [2, 2, 2])
    assert y.is_deleted() and not x.is_deleted()
    (of_x, of_y), _ = compiled.args_info
    assert (of_x.donated, of_y.donated, compiled.donate_argnums) == (False, True, (1,))
    assert compiled.memory_analysis()["alias"] == 24


def test_options_that_do_not_fit() -> None:
    def f(x: Any, y: Any) -> Any:
        return x

    for options, message in (
        ({"donate_argnums": 0, "static_argnums": 0}, "arguments 0, 'x' are static and donated"),
        ({"donate_argnums": 2}, "donate_argnums has 2, but the function takes 2 positional"),
        ({"donate_argnames": "z"}, "donate_argnames has 'z', but the function has no such parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            jit(f, **options)
    with pytest.raises(TypeError, match=r"donate_argnums must be a position or a sequence of positions.*got 'x'"):
        jit(f, donate_argnums="x")
    with pytest.raises(TypeError, match=r"donate_argnames must be a name or a sequence of names.*got \(0,\)"):
        jit(f, donate_argnames=(0,))
