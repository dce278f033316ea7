"""`check` and `debug_check`: run, compiled, transformed; what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax
from tests.checkify.oracle import OURS, essence, jax_library, message


def positive(x: Any) -> Any:
    checkify.check(x > 0, "{x} is not positive", x=x)
    return x * 2


def test_run_it_raises_at_once() -> None:
    assert positive(1.0) == 2.0
    with pytest.raises(checkify.JaxRuntimeError) as raised:
        positive(-1.0)
    assert essence(str(raised.value)) == "-1.0 is not positive (`check` failed)"
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value.__cause__, checkify.FailedCheckError)
    assert not getattr(raised.value, "__notes__", None)
    assert f"{__file__}:{positive.__code__.co_firstlineno + 1}:4 (positive)" in str(raised.value)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: corejax.vmap(lambda x: f(x))(jnp.array([1.0, -1.0])),
        lambda f: corejax.grad(f)(-1.0),
        lambda f: corejax.jvp(f, (-1.0,), (1.0,)),
        lambda f: corejax.linearize(f, -1.0),
        lambda f: corejax.vmap(corejax.grad(f))(jnp.array([1.0, -1.0])),
        lambda f: lax.scan(lambda c, x: (f(x), None), 0.0, jnp.array([1.0, -1.0])),
        lambda f: lax.cond(True, f, lambda x: x, -1.0),
        lambda f: lax.while_loop(lambda x: x < 5, lambda x: f(x) + 1, -1.0),
    ],
)
def test_it_raises_under_what_does_not_compile(transform: Any) -> None:
    with pytest.raises(checkify.CorejaxRuntimeError, match=r"^-1\.0 is not positive \(`check` failed\)"):
        transform(positive)


def test_compiled_it_is_refused() -> None:
    for f in (positive, corejax.grad(positive), lambda x: lax.scan(lambda c, _: (positive(c), None), x, None, 2)):
        with pytest.raises(ValueError, match="not functionalized") as raised:
            corejax.jit(f)(1.0)
        assert "(positive)" in str(raised.value)


def test_both_are_as_in_jax() -> None:
    jax = jax_library()
    for library in (OURS, jax):
        with pytest.raises(library.checkify.JaxRuntimeError, match=r"^1\.0 \(`check` failed\)"):
            library.checkify.check(False, "{x}", x=library.np.float32(1))
        with pytest.raises(ValueError, match="not functionalized"):
            library.jax.jit(lambda x, library=library: library.checkify.check(x > 0, ""))(1.0)


def test_debug_checks_are_left_out_unless_checkified() -> None:
    def f(x: Any) -> Any:
        checkify.debug_check(x > 0, "{} is not positive", x)
        checkify.check(x > 1, "{} is not above 1", x, debug=True)
        return x

    assert f(-1.0) == -1.0 and corejax.jit(f)(-1.0) == -1.0
    assert corejax.vmap(corejax.grad(f))(-jnp.ones(2)).tolist() == [1.0, 1.0]
    assert str(message(f, -1.0)).startswith("-1.0 is not positive ")
    assert str(message(corejax.jit(f), 1.0)).startswith("1.0 is not above 1 ")


def test_debug_checks_stand_in_no_way() -> None:
    """Where the branch that runs differs between elements, all do."""

    def f(p: Any, x: Any) -> Any:
        def positive(x: Any) -> Any:
            checkify.debug_check(x > 0, "{} is not positive", x)
            return x

        x = lax.cond(p, positive, lambda x: -x, x)
        return lax.while_loop(lambda x: x < 4, lambda x: positive(x) + 1, x)

    p, x = jnp.array([True, False]), jnp.array([1.0, -2.5])
    for mapped in (corejax.vmap(f), corejax.jit(corejax.vmap(f)), corejax.jit(corejax.vmap(corejax.jit(f)))):
        assert mapped(p, x).tolist() == [4.0, 4.5]
    assert corejax.vmap(checkify.checkify(f))(p, x)[0].get() is None
    assert str(corejax.vmap(checkify.checkify(f))(~p, x)[0].get()).count("is not positive") == 2


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: checkify.check(1, "x"), TypeError, "check takes a scalar pred, a boolean, got 1 of type int"),
        (lambda: checkify.debug_check(1.0, "x"), TypeError, "debug_check takes a scalar pred"),
        (lambda: checkify.check(jnp.ones(2) > 0, "x"), TypeError, "reduce it, with .all() for example"),
        (lambda: checkify.check([], "x"), TypeError, "check takes a scalar pred"),
        (lambda: checkify.check(True, 3), TypeError, "check: msg must be a string, got 3"),
        (lambda: checkify.check(True, "{}", "s"), TypeError, "got 's' of type str"),
        (lambda: checkify.check(True, "{} {}", 1), ValueError, "has the field {}, which is not among the arguments"),
        (lambda: checkify.check(True, "{a.b}", b=1), ValueError, "has the field {a.b}"),
        (lambda: checkify.check(True, "{1}", 1), ValueError, "has the field {1}"),
        (lambda: checkify.check(True, "{", 1), ValueError, "must be a format string"),
        (lambda: checkify.check(True, "{a}", b=1), ValueError, "double literal braces"),
    ],
)
def test_refusals(call: Any, error: Any, said: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert said in str(raised.value)


def test_every_scalar_boolean_will_do() -> None:
    for pred in (True, np.True_, np.array(True), jnp.array(True), jnp.float32(1) > 0):
        checkify.check(pred, "x")
    for pred in (False, np.False_, np.array(False), jnp.array(False)):
        with pytest.raises(checkify.CorejaxRuntimeError):
            checkify.check(pred, "x")


def test_messages_take_what_format_takes() -> None:
    def f(x: Any) -> Any:
        checkify.check(False, "{{{0:.2f}}} {1[a]} {n:03d} {x.shape}", x[0], {"a": x[1]}, n=jnp.int32(7), x=x)

    assert str(message(f, jnp.array([1.0, 2.0]))).startswith("{1.00} 2.0 007 (2,) (`check` failed) at ")


def test_a_text_with_braces_and_no_values_is_taken_as_it_is() -> None:
    for text, said in (("{'a': 1}", "{'a': 1}"), ("{", "{"), ("{{}}", "{}"), ("100%", "100%")):
        assert str(message(lambda x, text=text: checkify.check(x, text), False)).startswith(f"{said} (`check` failed)")


def test_values_have_no_derivative() -> None:
    """So a loop does not carry their tangents, and a while_loop around a check is differentiated in reverse."""

    def f(x: Any) -> Any:
        def step(i: Any) -> Any:
            checkify.check(x * i < 9, "{} at {}", x * i, i)
            return i + 1

        return x * lax.while_loop(lambda i: i < 5, step, 0)

    def loss(x: Any) -> Any:
        error, out = checkify.checkify(f)(x)
        return out, error

    for x, said in ((2.0, None), (3.0, "9.0 at 3 ")):
        slope, error = corejax.jit(corejax.grad(loss, has_aux=True))(x)
        assert slope == 5.0 and (error.get() is said or error.get().startswith(said))
    assert corejax.grad(f)(2.0) == 5.0
    pushed = corejax.make_jaxpr(lambda x: corejax.jvp(checkify.checkify(f), (x,), (x,))[1][1])(2.0)
    (loop,) = (e for e in pushed.eqns if e.primitive.name == "while")
    assert len(loop.outvars) == 5  # predicate, code, two values, i


def test_a_format_that_fails_shows_the_values() -> None:
    assert "{:d} [1.5; its format failed: " in str(message(lambda x: checkify.check(False, "{:d}", x), 1.5))


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "complex64", "bool", "uint64", "float8_e4m3fn"])
def test_values_of_every_dtype(dtype: str) -> None:
    value = jnp.ones((), dtype)

    def body(c: Any, x: Any) -> Any:
        checkify.check(c < 2, "{}", x)
        return c + 1, None

    checked = corejax.jit(checkify.checkify(lambda xs: lax.scan(body, 0, xs)))
    assert checked(jnp.ones(4, dtype))[0].get().startswith(f"{np.asarray(value)[()]} ")
    assert checked(jnp.ones(2, dtype))[0].get() is None


def test_values_without_elements() -> None:
    assert str(message(lambda x: checkify.check(False, "{}", x), jnp.zeros((0, 2)))).startswith("[] ")
    assert corejax.vmap(checkify.checkify(positive))(jnp.zeros(0))[0].get() is None
    assert checkify.checkify(corejax.vmap(positive))(jnp.zeros(0))[0].get() is None


def test_over_a_batch_the_first_element_counts() -> None:
    x = jnp.array([[3.0, 1.0], [-1.0, -2.0]])
    assert str(message(corejax.vmap(corejax.vmap(positive)), x)).startswith("-1.0 is not positive ")
    only_payload = lambda ok, x: corejax.vmap(lambda x: checkify.check(ok, "{}", x))(x)
    assert str(message(only_payload, jnp.array(False), x[0])).startswith("3.0 ")
    assert message(only_payload, jnp.array(True), x[0]) is None


def test_values_in_messages_are_arrays() -> None:
    def f(x: Any) -> Any:
        checkify.check(x[0] > 0, "{}", {"a": x, "b": (x[0],)})
        return x

    found = str(message(f, -jnp.ones(2)))
    assert found.startswith("{'a': Array([-1., -1.], dtype=float32), 'b': (Array(-1., dtype=float32),)} (`check`")


@pytest.mark.own_process  # what refers to what is looked up in all of a process's memory
def test_no_tracer_leaks() -> None:
    def f(x: Any) -> Any:
        checkify.check(x.sum() > 0, "{}", x)
        return x

    with corejax.checking_leaks():
        for g in (f, corejax.jit(f), corejax.vmap(corejax.jit(f)), lambda x: lax.cond(x[0, 0] < 1, f, lambda x: x, x)):
            assert message(g, -jnp.ones((1, 2))) is not None


def test_keys_in_messages() -> None:
    def f(key: Any) -> Any:
        checkify.check(corejax.random.uniform(key) > 2, "of {}", key)
        return key

    key = corejax.random.key(7)
    for g in (f, corejax.jit(f), lambda key: lax.cond(True, f, lambda key: key, key)):
        assert "dtype=key<fry>" in str(message(g, key)) and "[0 7]" in str(message(g, key))
    assert str(corejax.vmap(checkify.checkify(f))(key[None])[0].get()).startswith("at mapped index 0: of Array(()")
