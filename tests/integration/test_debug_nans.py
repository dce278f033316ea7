"""`debug_nans` and `debug_infs`: the operation that makes one is named, run and compiled, and nothing else changes."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import debug_infs, debug_nans, io_callback, jit, lax
from corejax.extend import Primitive

pytest.importorskip("jaxlib")

X = jnp.array([1.0, 0.0, -1.0])


def line_of(function: Any, offset: int = 0) -> str:
    return f"{__file__}:{inspect.getsourcelines(function)[1] + offset}:"


def log_of(x: Any) -> Any:
    return jnp.sum(jnp.log(x) * 2)


def in_loops(x: Any) -> Any:
    def body(c: Any, r: Any) -> Any:
        c = lax.cond(r < 0, lambda c: (
            lax.rsqrt(r) + c), lambda c: c, c)  # fmt: skip
        return c, c * 2

    return lax.scan(body, 0.0, x)


MAKERS: dict[str, tuple[Callable[..., Any], str, str]] = {  # function of X, primitive, its line
    "eager": (log_of, "log", line_of(log_of, 1)),
    "jit": (jit(log_of), "log", line_of(log_of, 1)),
    "compiled ahead": (jit(log_of).lower(X).compile(), "log", line_of(log_of, 1)),
    "eager loop": (in_loops, "rsqrt", line_of(in_loops, 3)),
    "compiled loop": (jit(in_loops), "rsqrt", line_of(in_loops, 3)),
    "nested": (jit(lambda x: cj.vmap(jit(lambda x: jit(log_of)(x)))(x[None])), "log", line_of(log_of, 1)),
    "gradient": (cj.grad(log_of), "log", line_of(log_of, 1)),
    "vmap": (cj.vmap(lambda x: jit(log_of)(x)), "log", line_of(log_of, 1)),
    "checkpoint": (jit(cj.grad(cj.checkpoint(lambda x: log_of(x) ** 2))), "log", line_of(log_of, 1)),
    "while": (jit(lambda x: lax.while_loop(lambda c: c < 1, lambda c: c + log_of(x), 0.0)), "log", line_of(log_of, 1)),
    "fast path": (jit(lambda x, y: log_of(x)), "log", line_of(log_of, 1)),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_the_primitive_and_its_line_are_named(maker: str) -> None:
    fun, primitive, line = MAKERS[maker]
    args = (X, X) if maker == "fast path" else (X,)
    before = fun(*args), fun(*args)
    with debug_nans(True):
        for _ in range(2):
            with pytest.raises(
                FloatingPointError, match=rf"invalid value \(nan\) encountered in {primitive}, at"
            ) as info:
                fun(*args)
            assert line in str(info.value)
            assert not hasattr(info.value, "__notes__")
    for got, wanted in zip(cj.tree.leaves(fun(*args)), cj.tree.leaves(before[1]), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_where_in_the_result_and_what_was_given() -> None:
    with debug_nans(), pytest.raises(FloatingPointError, match=r"f32\[3\], 1 of its elements, the first at \[2\]$"):
        jnp.sqrt(X)
    with debug_nans(), pytest.raises(FloatingPointError, match=r"in mul.*It has such values in operand 1"):
        lax.mul(X, np.full(3, np.nan, np.float32))
    with debug_infs(), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div, at .*first at \[1\]"):
        1 / X
    with debug_infs(), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in exp, at"):
        jit(lambda x: jnp.exp(x * 1000))(X)


def test_gradients_of_what_has_none() -> None:
    for f in (cj.grad(jnp.sqrt), jit(cj.grad(jnp.sqrt)), cj.grad(jit(jnp.sqrt))):
        with debug_infs(), pytest.raises(FloatingPointError, match=r"\(inf\)"):
            f(0.0)
        assert f(0.0) == np.inf


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "float8_e5m2"])
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray(np.array([0, 1]).astype(np.dtype(getattr(ml_dtypes, dtype, dtype))))
    with debug_nans(), debug_infs():
        for f in (lambda x: x * x, jit(lambda x: x * x)):
            np.testing.assert_array_equal(np.asarray(f(x)), np.asarray(x))
        for f in (lambda x: x / x, jit(lambda x: x / x)):
            with pytest.raises(FloatingPointError, match=r"encountered in div"):
                f(x)


def test_what_is_right_is_left_alone() -> None:
    def safe(x: Any) -> Any:
        return jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), 0)

    with debug_nans(), debug_infs():
        fast = jit(lambda x: jnp.where(x > 0, jnp.log(x), 0))
        for _ in range(3):
            np.testing.assert_array_equal(fast(X), [0, 0, 0])  # of a compiled function results are looked at
            np.testing.assert_array_equal(safe(X), jit(safe)(X))
            assert jnp.nanmean(jnp.asarray(np.float32([1, np.nan]))) == 1
            np.testing.assert_allclose(cj.nn.softmax(X * 5), jit(cj.nn.softmax)(X * 5), rtol=1e-5)
            assert jnp.argmax(X) == 0 and jnp.std(X) > 0 and (jnp.arange(3) // 2)[2] == 1
    with debug_nans(), pytest.raises(FloatingPointError, match="in log"):
        jnp.where(X > 0, jnp.log(X), 0)


def test_effects_do_not_happen_twice(capsys: Any) -> None:
    seen: list[Any] = []

    def noted(x: Any) -> Any:
        cj.debug.print("{}", x)
        lax.cond(x > 0, lambda: io_callback(seen.append, None, x), lambda: None)
        return jnp.log(-x)

    with debug_nans(), pytest.raises(FloatingPointError, match="in log, at"):
        jit(noted)(1.0)
    assert capsys.readouterr().out == "1.0\n"
    assert seen == [1.0]

    def asked(x: Any) -> Any:
        return jnp.log(io_callback(lambda x: (seen.append(x), x)[1], cj.ShapeDtypeStruct((), np.float32), x))

    with (
        debug_nans(),
        pytest.raises(FloatingPointError, match=r"in xla_call of 'asked', .*has effects, so it is not evaluated again"),
    ):
        jit(asked)(-1.0)
    assert seen == [1.0, -1.0]


def test_threads_and_nesting_and_settings() -> None:
    assert not cj.config.debug_nans and not cj.config.debug_infs
    failures: list[Any] = []

    def other() -> None:
        try:
            jit(jnp.log)(-1.0)
        except FloatingPointError as error:
            failures.append(error)

    with debug_nans(True):
        with debug_nans(False):
            assert np.isnan(jnp.log(-1.0))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
    assert len(failures) == 1, "settings hold for the process"
    cj.config.update("jax_debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            jnp.log(-1.0)
    finally:
        cj.config.update("debug_nans", False)
    assert np.isnan(jnp.log(-1.0))

    @debug_nans(True)
    def decorated(x: Any) -> Any:
        return jnp.log(x)

    with pytest.raises(FloatingPointError):
        decorated(-1.0)


def test_a_callback_and_a_primitive_of_anybodys() -> None:
    bad = Primitive("debug_nans.bad", impl=lambda x: x * np.float32(np.nan), abstract_eval=lambda x: x)
    host = lambda x: cj.pure_callback(lambda x: x * np.nan, cj.ShapeDtypeStruct((3,), np.float32), x)
    with debug_nans():
        with pytest.raises(FloatingPointError, match=r"in debug_nans.bad, at"):
            bad.bind(X)
        for f in (host, jit(host)):
            with pytest.raises(FloatingPointError, match=r"in pure_callback, at|in mul, at"):
                f(X)


def test_off_it_is_not_there() -> None:
    from corejax.interpreters import evaluation

    def layers() -> list[str]:
        return [f.__module__ for f in (evaluation.bottom.process_primitive, evaluation.bottom.run_program)]

    assert "corejax_explain.checks.values" not in layers()
    with debug_nans():
        assert layers() == ["corejax_explain.checks.values"] * 2
    assert "corejax_explain.checks.values" not in layers()
