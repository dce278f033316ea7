"""Nothing keeps a dead function, its arrays or its compiled programs alive; `clear_caches` drops what is kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import grad, jit, lax, vmap
from corejax.extend import Primitive, ShapedArray, primitives
from corejax.extend.messages import clears_cache

pytest.importorskip("jaxlib")

X = np.arange(1, 4, dtype=np.float32)


def executables() -> int:
    """How many compiled programs the client holds."""
    from corejax_xla_backend import _jaxlib

    return len(_jaxlib.client().live_executables())


@pytest.fixture(autouse=True)
def nothing_is_kept_for_equal_programs() -> Iterator[None]:
    with corejax.config.override(kept_programs=0):
        yield


@pytest.fixture
def by_count() -> Iterator[None]:
    """Only reference counts free anything meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def product(weights: Any) -> Callable[[Any], Any]:
    """A function that closes over an array."""
    return lambda x: jnp.sum(jnp.sin(x) * weights)


def calling_back(f: Callable[[Any], Any]) -> None:
    """Called until C++ repeats it."""
    g = jit(lambda x: corejax.pure_callback(np.negative, corejax.ShapeDtypeStruct((), np.float32), f(x)))
    for _ in range(3):
        g(X)


USES: dict[str, Callable[[Any], Any]] = {
    "call": lambda f: f(X),
    "grad": lambda f: grad(f)(X),
    "second derivative": lambda f: grad(lambda x: grad(f)(x).sum())(X),
    "vmap": lambda f: vmap(f)(np.ones((2, 3), np.float32)),
    "nested": lambda f: jit(lambda x: f(x) + f(2 * x))(X),
    "stages": lambda f: f.lower(X).compile()(X),
    "shape": lambda f: f.eval_shape(X),
    "scan": lambda f: lax.scan(lambda c, x: (c + f(x), c), 0.0, np.ones((2, 3), np.float32)),
    "scan gradient": lambda f: grad(lambda x: lax.scan(lambda c, _: (f(c * x), None), x[0], None, 2)[0])(X),
    "cond": lambda f: jit(lambda p, x: lax.cond(p, f, lambda x: x.sum(), x))(True, X),
    "while": lambda f: lax.while_loop(lambda x: x < 3, lambda x: x + 1 + 0 * f(X), 0.0),
    "checkpoint": lambda f: grad(corejax.checkpoint(f))(X),
    "callback": lambda f: calling_back(f),
    "custom": lambda f: grad(with_rule(f))(X),
    "error": lambda f: failing(f),
}


def with_rule(fun: Callable[[Any], Any]) -> Any:
    """A function with a derivative of its own."""
    call = corejax.custom_jvp(fun)
    call.defjvp(lambda primals, tangents: (fun(*primals), fun(*primals) * jnp.sum(tangents[0])))
    return call


def failing(fun: Callable[[Any], Any]) -> None:
    """A call whose trace raises."""
    with pytest.raises(ValueError):
        fun(np.ones((2, 2), np.float32))


@pytest.mark.parametrize("use", USES)
def test_nothing_keeps_a_dead_function(use: str) -> None:
    USES[use](jit(product(jnp.asarray(X))))  # what is made once and kept
    gc.collect()
    before = executables()
    for i in range(2):
        weights = jnp.asarray(X) + i
        fun = product(weights)
        dead = [weakref.ref(fun), weakref.ref(weights)]
        USES[use](jit(fun))
        del fun, weights
        gc.collect()
        assert [reference() for reference in dead] == [None, None]
    assert executables() <= before


def test_a_compiled_function_goes_with_its_last_reference(by_count: None) -> None:
    before = executables()
    f = jit(lambda x: jnp.cos(x) + 1)
    f(X), f(X)
    assert executables() == before + 1
    f.clear_cache()
    assert executables() == before
    f(X), f(X), f(X)
    del f
    assert executables() == before


def test_a_method_that_is_compiled_goes_with_its_object() -> None:
    class Model:
        def __init__(self) -> None:
            self.weights = jnp.asarray(X)
            self.step = jit(self._step)

        def _step(self, x: Any) -> Any:
            return x * self.weights

    model = Model()
    np.testing.assert_array_equal(model.step(X), X * X)
    dead = weakref.ref(model)
    del model
    gc.collect()
    assert dead() is None


def test_clear_caches_drops_traces_programs_and_types() -> None:
    traced = []

    def fun(x: Any) -> Any:
        traced.append(x.shape)
        return jnp.exp(x) - 2

    program = corejax.make_jaxpr(jit(fun))(X)  # holds the inner program, whoever compiled it
    f, g = jit(fun), jit(lambda x, n: x * n, static_argnums=1)
    f(X), f(X), g(X, 2), g(X, 2), corejax.ir.eval_jaxpr(program.jaxpr, program.consts, [jnp.asarray(X)])
    compiled = f.lower(X).compile()
    gc.collect()
    before, count = executables(), len(traced)
    corejax.clear_caches()
    gc.collect()
    assert executables() <= before - 1  # all but the one that `compiled` holds
    assert not any(p._memo for p in primitives.values())
    np.testing.assert_allclose(compiled(X), np.exp(X) - 2, rtol=1e-6)
    np.testing.assert_allclose(f(X), np.exp(X) - 2, rtol=1e-6)
    np.testing.assert_array_equal(g(X, 2), X * 2)
    assert len(traced) == count + 1


def test_plugins_take_part_in_clear_caches() -> None:
    kept = {"a": 1}
    assert clears_cache(kept.clear) == kept.clear
    corejax.clear_caches()
    assert kept == {}
    with pytest.raises(TypeError, match=r"clears_cache takes a function .*, got 3"):
        clears_cache(3)  # type: ignore[type-var]


def test_functions_among_parameters_are_not_kept() -> None:
    apply_p = Primitive(
        "freeing_apply",
        impl=lambda x, *, fun: fun(x),
        abstract_eval=lambda x, *, fun: ShapedArray(x.shape, x.dtype),
    )

    def use() -> weakref.ref[Any]:
        weights = np.array(X)
        np.testing.assert_array_equal(apply_p.bind(jnp.asarray(X), fun=lambda x: x * weights), X * X)
        return weakref.ref(weights)

    dead = use()
    gc.collect()
    assert dead() is None


def test_old_traces_of_one_function_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax_xla_backend._jit import traces

    monkeypatch.setattr(traces, "MAX_TRACES", 3)
    traced = []
    f = jit(lambda x, n: traced.append(n) or x * n, static_argnums=1)
    for n in range(5):
        f.eval_shape(X, n)
    f.eval_shape(X, 4), f.eval_shape(X, 0)
    assert traced == [0, 1, 2, 3, 4, 0]
