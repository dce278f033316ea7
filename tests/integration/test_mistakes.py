"""Mistakes next to those of docs/common-errors.md, and what is said of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.scipy.linalg
from corejax import grad, jit, lax, random, vmap
from corejax.errors import UnexpectedTracerError
from corejax.example_libraries import optimizers

pytest.importorskip("jaxlib")
X = jnp.arange(3.0)


def said(kind: type[Exception], function: Any, *args: Any) -> str:
    with pytest.raises(kind) as caught:
        function(*args)
    return str(caught.value)


def test_writing_in_other_ways() -> None:
    def delete(x: Any) -> None:
        del x[0]

    def assign(x: Any) -> None:
        x.at[0] = 1.0

    def add(x: Any) -> None:
        x.at[0] += 1.0

    def divide(x: Any) -> None:
        x.at[0] /= 2.0

    for run in (lambda f: f(X), lambda f: jit(f)(X)):
        assert "x = corejax.numpy.delete(x, index)" in said(TypeError, run, delete)
        assert "x = x.at[index].set(value)" in said(TypeError, run, assign)
        assert "x = x.at[index].add(value)" in said(TypeError, run, add)
        assert "multiply, divide" in said(TypeError, run, divide)
        assert "x.at[index].set(value)" in said(TypeError, run, lambda x: x.at(0).set(1))


def test_a_number_of_parts_that_is_traced() -> None:
    text = said(TypeError, jit(lambda x, n: jnp.split(x, n)), X, 3)
    assert "depends on the value of the argument n" in text and "static_argnums" in text
    assert "indices_or_sections is an integer" in said(TypeError, jnp.split, X, "a")


@pytest.mark.parametrize("use", [bool, int, float, np.asarray, lambda x: x.item(), lambda x: range(x), "{:.2f}".format])
def test_conversions_of_what_is_kept_for_later(use: Any) -> None:
    """Whoever converts it is told that it escaped, not that it is being traced."""
    kept = []
    for transformed in (jit, vmap):
        transformed(lambda x: kept.append(jnp.int32(x)) or x)(X if transformed is vmap else 1.0)
        text = said(UnexpectedTracerError, use, kept.pop())
        assert "that transformation has ended" in text and "test_mistakes.py" in text


def test_what_gradients_refuse() -> None:
    assert "is its return statement missing?" in said(TypeError, grad(lambda x: None), 1.0)
    assert "is key<fry>. Convert" in said(TypeError, grad(random.normal), random.key(0))
    for transform in (corejax.jacfwd, corejax.hessian):
        assert "allow_int" not in said(TypeError, transform(lambda x: x), 3)
    for transform in (grad, corejax.jacrev, corejax.value_and_grad):
        assert "allow_int" in said(TypeError, transform(lambda x: x), 3)


def test_static_arguments_without_a_hash() -> None:
    @dataclasses.dataclass
    class Config:
        width: int

    f = jit(lambda x, n: x, static_argnums=1)
    for value, words in {
        "list": ([3], "pass a tuple instead of a list, or do not mark"),
        "tuple": (([3],), "make each of its items hashable"),
        "dict": ({"a": 1}, "pass a tuple of its items"),
        "dataclass": (Config(1), "@dataclass(frozen=True)"),
        "array": (np.ones(2), "; do not mark the argument as static"),
    }.values():
        assert words in said(TypeError, f, X, value)
    assert "argument of an enclosing transformation" in said(TypeError, vmap(f), X, jnp.arange(3))
    assert "argument of an enclosing transformation" in said(TypeError, jit(f), X, 3)


def test_in_axes_for_a_keyword() -> None:
    text = said(ValueError, lambda: vmap(lambda x, s: x * s, in_axes=(0, None))(X, s=2.0))
    assert "1 positional arguments (keyword arguments are mapped over axis 0)" in text


def test_arrays_where_one_sequence_of_them_is_meant() -> None:
    for name in ("concatenate", "stack", "hstack", "vstack", "dstack"):
        assert f"write {name}((x, y)), not {name}(x, y)" in said(TypeError, getattr(jnp, name), X, X)
    for name in ("max", "min"):
        assert f"{name}: the second argument is the axis" in said(TypeError, getattr(jnp, name), X, X)
        assert f"corejax.numpy.{name}imum(x, y)" in said(TypeError, jit(getattr(jnp, name)), X, X)


def test_sizes_beside_each_other() -> None:
    for function in (jnp.zeros, jnp.ones, jnp.empty, lambda *sizes: random.normal(random.key(0), *sizes)):
        assert "the sizes of a shape are one argument, as in (2, 3)" in said(TypeError, function, 3, 4)
    assert "sizes" not in said(TypeError, X.view, -1)


def test_classes_of_numbers_among_other_arguments() -> None:
    """They have attributes `ndim`, `shape` and `dtype`."""
    calls = (
        lambda: jnp.sum(X, np.float32),
        lambda: jnp.zeros(np.float32),
        lambda: lax.full(np.float32, 1.0),
        lambda: jnp.empty_like(np.float32),
        lambda: jnp.tril_indices_from(np.float32),
        lambda: jnp.split(X, np.float32),
        lambda: corejax.eval_shape(jnp.sin, np.float32),
    )
    for call in calls:
        text = said(TypeError, call)
        assert "numpy.float32" in text or "got type" in text
        assert "descriptor" not in text and "iterable" not in text


def test_pullbacks_take_one_cotangent() -> None:
    for what, linear in {
        "the pullback of sin": corejax.vjp(jnp.sin, 1.0)[1],
        "the transpose of <lambda>": corejax.linear_transpose(lambda x: 2 * x, 1.0),
    }.items():
        assert f"{what} takes one argument" in said(TypeError, linear, 1.0, 2.0)
        assert "got 0" in said(TypeError, linear)


def test_the_function_of_a_reduction_that_looks_at_values() -> None:
    def larger(a: Any, b: Any) -> Any:
        return a if a > b else b

    for reduce in (
        lambda: lax.reduce(X, 0.0, larger, (0,)),
        lambda: lax.reduce_window(X, 0.0, larger, (2,), (1,), "SAME"),
    ):
        assert "while tracing the function larger" in said(corejax.errors.TracerBoolConversionError, reduce)
    assert "tracing the function max for reduce_window" in said(
        corejax.errors.TracerBoolConversionError, lambda: lax.reduce_window(X, 0.0, max, (2,), (1,), "SAME")
    )


def test_errors_of_rules_that_users_write_are_not_of_the_library() -> None:
    def f(x: Any) -> Any:
        return x

    with_jvp, with_vjp = corejax.custom_jvp(f), corejax.custom_vjp(f)
    with_jvp.defjvp(lambda primals, tangents: primals)
    with_vjp.defvjp(lambda x: x, lambda residuals, ct: ct)
    for function in (with_jvp, with_vjp):
        with pytest.raises(TypeError, match="must return a pair") as caught:
            grad(function)(1.0)
        assert not getattr(caught.value, "__notes__", [])


def test_what_is_no_function() -> None:
    b = jnp.ones(2)
    same = lambda *args: args[-1]
    for name, call in {
        "custom_linear_solve: matvec": lambda: lax.custom_linear_solve(None, b, same),
        "custom_linear_solve: transpose_solve": lambda: lax.custom_linear_solve(same, b, same, transpose_solve=3),
        "custom_root: tangent_solve": lambda: lax.custom_root(same, b, same, b),
    }.items():
        assert f"{name} must be a function, got" in said(TypeError, call)


def test_which_function_of_several_layers_is_named() -> None:
    text = np.array(["a"])
    assert said(TypeError, random.bernoulli, random.key(0), text).startswith("bernoulli: arrays of dtype <U1")
    assert said(ValueError, lambda: corejax.tree.map(max, {"a": 1}, {"b": 1})).startswith("tree.map: tree structures")
    assert "as cho_factor returns it" in said(TypeError, corejax.scipy.linalg.cho_solve, jnp.eye(2), X)
    assert "apply_over_axes takes arrays and scalars, got NoneType as the result of func" in said(
        TypeError, lambda: jnp.apply_over_axes(lambda x, axis: None, X, [0])
    )
    with pytest.raises(corejax.errors.ConcretizationTypeError) as caught:
        jit(lambda n: jnp.arange(n))(3)
    assert "arange: bounds and step must be static" in caught.value.__notes__[0]


MESSAGES = {
    "lax.add": (lambda: lax.add("a", 1), TypeError, "add: 'a' of type str is not an array"),
    "lax.select": (lambda: lax.select(True, 1, "a"), TypeError, "select: 'a' of type str"),
    "lax.abs": (lambda: lax.abs(2**70), OverflowError, "abs: Python int 1180591620717411303424 does not fit int32"),
    "device_put": (lambda: corejax.device_put("a"), TypeError, "device_put: 'a' of type str"),
    "places": (
        lambda: corejax.device_put(X, corejax.devices()),
        ValueError,
        "device_put: device must be a device or sharding, or a pytree of these .*; at the root: list of",
    ),
    "pad": (lambda: jnp.pad(X, 1, constant_values="a"), TypeError, "pad: 'a' is not an array of numbers"),
    "dict": (lambda: jnp.asarray({"a": 1}), TypeError, "asarray: {'a': 1} of type dict is not an array of numbers"),
    "norm": (lambda: jnp.linalg.norm(jnp.eye(2), "bad"), ValueError, "norm: ord must be 'fro', "),
    "frombuffer": (lambda: jnp.frombuffer(b"abc", "float32"), ValueError, "frombuffer: .*3 bytes"),
    "fromstring": (lambda: jnp.fromstring("1,a", sep=","), ValueError, "fromstring: .*'1,a' with ','"),
    "padding": (
        lambda: lax.reduce_window(X, 0.0, lax.add, (2,), (1,), "FOO"),
        ValueError,
        "reduce_window: padding must be",
    ),
    "mode": (lambda: corejax.ops.segment_sum(X, jnp.arange(3), mode="x"), ValueError, "segment_sum: unknown mode 'x'"),
    "int32": (lambda: jnp.int32(1, 2), TypeError, "int32 takes one value"),
    "unflatten": (lambda: corejax.tree.unflatten(3, [1]), TypeError, "tree.unflatten takes a PyTreeDef"),
    "shape": (lambda: corejax.ShapeDtypeStruct(3, "float32"), TypeError, "ShapeDtypeStruct: .* got shape 3"),
    "picture": (lambda: corejax.debug.visualize_array_sharding([1]), TypeError, r"visualize_array_sharding: \[1\]"),
    "axis_names": (lambda: corejax.make_mesh((1,), None), TypeError, "make_mesh: axis_names are strings in a tuple"),
    "float32": (lambda: jnp.float32(object), TypeError, "float32: <class 'object'> of type type is not"),
    "state": (
        lambda: optimizers.sgd(0.1)[1](0, X, X),
        TypeError,
        "sgd: update takes a state returned by init or update",
    ),
    "dtype": (lambda: corejax.ShapeDtypeStruct((3,), "flot"), TypeError, "ShapeDtypeStruct: .* dtype 'flot'"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_function_and_what_it_got_are_named(name: str) -> None:
    function, kind, text = MESSAGES[name]
    with pytest.raises(kind, match=f"^{text}"):
        function()
