"""`explain` on jitted functions: what is traced and compiled, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax import config, device_put, devices, explain, grad, jit, vmap

pytest.importorskip("jaxlib")

X = np.ones(3, np.float32)


def reasons(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[str]:
    """Why the call traces; empty if it does not."""
    return [reason for event in explain(f)(*args, **kwargs).jit if event.kind == "trace" for reason in event.reasons]


def double(x: Any) -> Any:
    return x + x


def test_first_and_repeated_calls() -> None:
    f = jit(double)
    first = explain(f)(X)
    np.testing.assert_array_equal(first.result, 2 * X)
    trace, compilation = first.jit
    assert (trace.kind, trace.name, trace.reasons) == ("trace", "double", ("first call",))
    assert trace.facts["signature"] == "(f32[3])"
    assert (compilation.kind, compilation.name) == ("compile", "double")
    assert compilation.reasons == ("first run of this program",) and compilation.facts["equations"] == 1
    assert trace.ms > 0 and compilation.ms > 0
    assert first.primitive("add").interpreters == {"staging": 1}
    assert first.primitive("add").rule("xla_translation").plugin == "lax_basic"
    assert first.primitive("xla_call").rule("impl").plugin == "xla_backend"
    for _ in range(3):  # the last ones would be the dispatcher's alone
        again = explain(f)(X)
        assert again.jit == () and again.calls == {"double": 1}
        f(X)


def test_a_call_that_was_explained_is_compiled_for_good() -> None:
    calls = []
    f = jit(lambda x: calls.append(None) or x + x)
    explain(f)(X)
    f(X)
    f(X)
    assert len(calls) == 1


def test_types() -> None:
    f = jit(double)
    f(X)
    assert reasons(f, np.ones(4, np.float32)) == ["shape of x: (4,), was (3,)"]
    assert reasons(f, np.ones(4, np.int32)) == ["dtype of x: int32, was float32"]
    f(np.float32(1))
    assert reasons(f, 1.0) == ["weak type of x: weak (of a Python scalar), was strong (of an array)"]


def test_nearest_earlier_signature() -> None:
    f = jit(lambda x, y: x)
    f(X, X)
    f(np.ones((2, 2), np.float32), np.ones(7, np.int32))
    assert reasons(f, np.ones((2, 2), np.float32), np.ones(8, np.int32)) == ["shape of y: (8,), was (7,)"]
    assert reasons(f, X, np.ones(3, np.int32)) == ["dtype of y: int32, was float32"]


def test_structure() -> None:
    f = jit(lambda x: 1.0)
    f({"a": X})
    (why,) = reasons(f, {"b": X})
    assert why.startswith("structure of the arguments: ") and "'b'" in why and "was" in why and "'a'" in why
    f((X, X))
    assert any("structure" in reason for reason in reasons(f, [X, X]))


def test_leaves_have_names() -> None:
    f = jit(lambda params: params["w"])
    f({"w": X})
    assert reasons(f, {"w": X[:2]}) == ["shape of params['w']: (2,), was (3,)"]


def test_static_arguments() -> None:
    f = jit(lambda x, n=1, *, mode="a": x, static_argnames=("n", "mode"))
    f(X, 2)
    assert reasons(f, X, 3) == ["static argument 'n': 3, was 2"]
    assert reasons(f, X, 2, mode="b") == ["static argument 'mode': 'b', was not given"]
    assert reasons(f, X, 2, mode="c") in (
        ["static argument 'mode': 'c', was 'b'"],
        ["static argument 'mode': 'c', was not given"],
    )
    assert reasons(f, X, 3.0) == ["static argument 'n': 3.0 of type float, was 3 of type int"]
    assert reasons(f, X, 3.0) == []


def test_settings() -> None:
    f = jit(double)
    f(X)
    with config.override(default_dtype_bits=64):
        assert reasons(f, X) == ["settings: default_dtype_bits=64, was 32"]
    assert reasons(f, X) == []


def test_named_axes() -> None:
    f = jit(double)
    f(X)
    (why,) = reasons(vmap(f, axis_name="i"), np.ones((2, 3), np.float32))
    assert why == "named axes: {'i': 2}, were {}"


def test_closed_over_tracers() -> None:
    def f(x: Any) -> Any:
        return jit(double_and_more(x))(X).sum()

    def double_and_more(y: Any) -> Any:
        return lambda x: x + y

    (first, tracers) = reasons(grad(f), X)
    assert first == "first call" and "closes over values of a transformation" in tracers


def test_cleared_cache() -> None:
    f = jit(double)
    f(X)
    f.clear_cache()
    assert reasons(f, X) == ["first call"]


def test_transformed() -> None:
    f = jit(lambda x: jnp.sin(x).sum())
    f(X)
    found = explain(grad(f))(X)
    names = [event.name for event in found.jit]
    assert names == ["jvp(<lambda>)", "transpose(jvp(<lambda>))"] or len(names) == 2
    assert {event.kind for event in found.jit} == {"compile"} and found.residual_bytes == 12
    assert explain(grad(f))(X).jit == ()


def test_nested_functions_are_told_apart() -> None:
    inner = jit(double)

    @jit
    def outer(x: Any) -> Any:
        return inner(inner(x))

    found = explain(outer)(X)
    assert [(event.kind, event.name) for event in found.jit] == [
        ("trace", "double"),
        ("trace", "outer"),
        ("compile", "outer"),
    ]
    assert found.calls == {"outer": 1, "double": 2}
    text = repr(found)
    assert "jit:" in text and "first call" in text and "call x 2" in text


def test_other_platforms_and_lowering() -> None:
    f = jit(lambda x: 2 * x)
    assert [event.kind for event in explain(f.lower)(X).jit] == ["trace"]
    assert [event.kind for event in explain(f)(X).jit] == ["compile"]


def test_errors_leave_nothing() -> None:
    def fails(x: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        explain(jit(fails))(X)
    f = jit(double)
    np.testing.assert_array_equal(f(X), 2 * X)
    assert explain(f)(X).jit == ()


def net(weights: list[Any], x: Any) -> Any:
    for w in weights:
        x = jnp.tanh(x @ w) + x
    return jnp.sum(x)


@pytest.mark.parametrize("wrap", [lambda f: f, grad], ids=["plain", "grad"])
def test_twenty_equal_layers_are_a_scan(wrap: Any) -> None:
    weights = [np.eye(3, dtype=np.float32)] * 20
    explanation = explain(jit(wrap(net)))(weights, X)
    (text,) = [event.facts["unrolled"] for event in explanation.jit if event.kind == "trace"]
    assert text.startswith("20 equal runs of ") and "test_explain_jit.py" in text and "lax.scan" in text
    assert "suggestions" in repr(explanation) and "20 equal runs" in explanation.to_json()


def test_what_is_no_layers() -> None:
    weights = [np.eye(3, dtype=np.float32)] * 19
    assert not any("unrolled" in event.facts for event in explain(jit(net))(weights, X).jit)
    several = [np.ones((3 + i, 4 + i), np.float32) for i in range(24)]
    assert not any("unrolled" in event.facts for event in explain(jit(net_of_shapes))(several, X).jit)


def net_of_shapes(weights: list[Any], x: Any) -> Any:
    for w in weights:
        x = jnp.tanh(x @ w)
    return x


def test_why_the_first_tier_waits() -> None:
    def waits(f: Any, *args: Any) -> list[str]:
        return [reason for event in explain(f)(*args).jit if event.kind == "tier" for reason in event.reasons]

    f = jit(double, tier="auto")
    bound = device_put(X, devices()[0])
    assert not waits(f, X) and not waits(jit(double), bound)
    (reason,) = waits(f, bound)
    assert "waits for the compiler" in reason and "bound to its devices" in reason
