"""Wrong arguments, class by class: errors that name function and argument, raised on purpose, not met by accident."""

from __future__ import annotations

import linecache
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.image
import corejax.nn
import corejax.numpy as jnp
import corejax.ops
import corejax.random
from corejax import lax
from corejax.extend.transforms import trace_stack

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
V = np.linspace(0.1, 0.9, 4, dtype=np.float32)
I = np.array([1, 0, 2, 1], np.int32)
NOT_ARRAYS = ("abc", None, object(), {"a": 1}, [1, [2]], np.array(["a"]), np.array([object()]), len)
NOT_INTEGERS = (1.5, "a", None, 1j, object(), np.float32(1), np.array([1, 2]))

UNARY = (
    "abs",
    "sin",
    "floor",
    "exp",
    "isnan",
    "sign",
    "real",
    "square",
    "cbrt",
    "sinc",
    "signbit",
    "sort",
    "sum",
    "mean",
)
BINARY = (
    "add",
    "divide",
    "power",
    "maximum",
    "logaddexp",
    "hypot",
    "equal",
    "logical_and",
    "fmod",
    "arctan2",
    "matmul",
)
ALONG = ("sum", "max", "mean", "var", "median", "all", "cumsum", "argmax", "sort", "argsort", "flip", "nansum", "diff")
NAMED = ("sum", "max", "mean", "var", "all", "nansum")  # these take names of mapped axes
OVER_ONE = ("argmax", "sort", "argsort", "cumulative_sum", "diff", "take_along_axis", "split", "stack", "concatenate")


def _extra(name: str) -> tuple[Any, ...]:
    return {"take_along_axis": (np.zeros((1, 4), np.int32),), "split": (2,)}.get(name, ())


def _operands(name: str) -> tuple[Any, ...]:
    x = jnp.asarray(X)
    return ([x, x],) if name in ("stack", "concatenate") else (x, *_extra(name))


def refused(f: Callable[[], Any], *words: str, kinds: Any = (TypeError, ValueError)) -> None:
    """The call raises one of these errors, whose text has the words; by a `raise` of ours; and no trace is left."""
    with pytest.raises(kinds) as found:
        f()
    error = found.value
    place = traceback.extract_tb(error.__traceback__)[-1]
    lines = [linecache.getline(place.filename, n) for n in range(place.lineno or 0, (place.end_lineno or 0) + 1)]
    assert "corejax" in place.filename and any("raise" in line for line in lines), f"by accident: {error}\n{place}"
    assert all(word in "\n".join([str(error), *getattr(error, "__notes__", ())]) for word in words), str(error)
    assert len(trace_stack()) == 1


@pytest.fixture(autouse=True)
def full_tracebacks() -> Any:
    with corejax.config.override(traceback_filtering="off"):
        yield


@pytest.mark.parametrize("name", UNARY)
def test_what_is_no_array(name: str) -> None:
    for bad in NOT_ARRAYS:
        refused(lambda: getattr(jnp, name)(bad), name.replace("abs", "absolute"))  # noqa: B023


@pytest.mark.parametrize("name", BINARY)
def test_operands_of_two(name: str) -> None:
    f = getattr(jnp, name)
    for bad in NOT_ARRAYS:
        refused(lambda: f(X, bad), name)  # noqa: B023
        refused(lambda: f(bad, jnp.asarray(X)), name)  # noqa: B023
    short = {"divide": "div", "power": "pow", "maximum": "max", "equal": "eq"}.get(name, name)
    refused(lambda: f(jnp.asarray(X), jnp.ones(5)), short)


@pytest.mark.parametrize("name", sorted({*ALONG, *OVER_ONE}))
def test_axes(name: str) -> None:
    f = getattr(jnp, name)
    for bad in (7, -5, 2**70):
        refused(lambda: f(*_operands(name), axis=bad), name, "axis", kinds=np.exceptions.AxisError)  # noqa: B023
    for bad in (1.5, 1j, object()):
        refused(lambda: f(*_operands(name), axis=bad), name, "axis")  # noqa: B023
    kind = NameError if name in NAMED else TypeError
    refused(lambda: f(*_operands(name), axis="a"), name, "axis", kinds=kind)
    if name in ALONG[:6]:
        refused(lambda: f(jnp.asarray(X), axis=(0, 0)), name, "axis")
        refused(lambda: f(jnp.asarray(X), axis=(0, -2)), name, "axis")
    refused(lambda: corejax.jit(lambda axis: f(*_operands(name), axis=axis))(1), name, "axis", kinds=TypeError)


SIZES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "eye": ("a size", lambda n: jnp.eye(n)),
    "nonzero": ("size", lambda n: jnp.nonzero(X, size=n)),
    "unique": ("size", lambda n: jnp.unique(I, size=n)),
    "repeat": ("total_repeat_length", lambda n: jnp.repeat(I, 2, total_repeat_length=n)),
    "linspace": ("num", lambda n: jnp.linspace(0, 1, n)),
    "segment_sum": ("num_segments", lambda n: corejax.ops.segment_sum(X, np.array([0, 1, 0]), n)),
    "tri": ("a size", lambda n: jnp.tri(n)),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str) -> None:
    what, f = SIZES[name]
    for bad in NOT_INTEGERS:
        if bad is not None or name in ("eye", "linspace"):
            refused(lambda: f(bad), name, what)  # noqa: B023
    refused(lambda: f(-1), name, what)
    refused(lambda: corejax.jit(f)(3), name, kinds=TypeError)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "full", "broadcast_to", "reshape"])
def test_shapes(name: str) -> None:
    f = {
        "full": lambda shape: jnp.full(shape, 1.0),
        "broadcast_to": lambda shape: jnp.broadcast_to(V, shape),
        "reshape": lambda shape: jnp.reshape(V, shape),
    }.get(name, getattr(jnp, name))
    for bad in (1.5, (1.5,), "a", ("a",), (2, None), object(), {1: 2}, (-3, 2)):
        refused(lambda: f(bad), name)  # noqa: B023
    refused(lambda: corejax.jit(lambda n: f((n, 2)))(2), name, kinds=TypeError)


DTYPED: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda d: jnp.zeros(3, d),
    "astype": lambda d: jnp.astype(V, d),
    "sum": lambda d: jnp.sum(V, dtype=d),
    "arange": lambda d: jnp.arange(3, dtype=d),
    "one_hot": lambda d: corejax.nn.one_hot(I, 3, dtype=d),
    "convert_element_type": lambda d: lax.convert_element_type(V, d),
}


@pytest.mark.parametrize("name", DTYPED)
def test_dtypes(name: str) -> None:
    for bad in ("float33", 1.5, 7, V, jnp.asarray(V), object(), "U3", "object"):
        refused(lambda: DTYPED[name](bad), name, kinds=TypeError)  # noqa: B023


OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "ragged": (lambda: jnp.array([[1, 2], [3]]), "array: nested sequences of unequal lengths"),
    "a number too large": (lambda: jnp.array([1, 2**70]), "array"),
    "a number for int8": (lambda: jnp.full(3, 300, "int8"), "300 is out of bounds for int8"),
    "a number for int4": (lambda: jnp.array(300, "int4"), "300 is out of bounds for int4"),
    "an operand too large": (
        lambda: jnp.add(jnp.asarray(I), 2**40),
        "add: Python number 1099511627776 is out of bounds",
    ),
    "a value too large": (lambda: jnp.asarray(I).at[0].set(2**40), "set: Python number"),
    "a number of many bits": (lambda: jnp.asarray(V) * 2**3000, "integer of 3001 bits"),
    "a complex fill": (lambda: lax.full((2,), 1j, np.float32), "the complex number 1j cannot be converted to float32"),
    "a list as operand": (lambda: jnp.asarray(V) * (1, 2), "mul takes arrays and scalars, got tuple"),
    "an inner primitive": (lambda: corejax.nn.celu(1j), "celu: gt does not accept dtype complex64"),
    "not callable": (lambda: jnp.apply_along_axis(3, 0, X), "apply_along_axis: func1d is a function, got 3"),
    "no sequence": (lambda: jnp.lexsort(3), "lexsort: keys is a sequence, got 3"),
    "no arrays": (lambda: jnp.concatenate(1), "concatenate takes a sequence of arrays, got 1"),
    "labels": (lambda: jnp.einsum("ij,jk", X, X), "einsum: label 'j' has size 4, and 3 in operand 1"),
    "subscripts": (lambda: jnp.einsum(3, X), "einsum: subscripts must be a string"),
    "strides": (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2), (0, 1), "VALID"), "window_strides must have"),
    "padding": (lambda: lax.pad(X, 0.0, [(1, 1)] * 2), "pad: padding_config must have (low, high, interior)"),
    "permutation": (lambda: lax.transpose(X, (0.0, 1)), "transpose: permutation is an integer, got 0.0"),
    "limits": (lambda: lax.slice(X, (0, 0), (9, 9)), "slice"),
    "dimension numbers": (lambda: lax.conv_dimension_numbers(3, (1, 1), None), "lhs_shape is a sequence, got 3"),
    "a slice": (lambda: jnp.asarray(V)[:2.5], "the bounds of a slice must be integers"),
    "an index": (lambda: jnp.asarray(V)[1.0], "got 1.0 of type float"),
    "too many indices": (lambda: jnp.asarray(V)[0, 0], "Too many indices"),
    "at without index": (lambda: jnp.asarray(V).at.set(1), "index it first"),
    "epsilon": (
        lambda: corejax.nn.standardize(X, epsilon="a"),
        "standardize takes arrays and scalars, got str as epsilon",
    ),
    "spatial axes": (lambda: corejax.image.scale_and_translate(X, (3, 4), 0, V, V, "linear"), "spatial_dims"),
    "a misspelt name": (lambda: jnp.zeross, "module 'corejax.numpy' has no attribute 'zeross'; did you mean 'zeros'?"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_others(case: str) -> None:
    f, text = OTHERS[case]
    refused(f, text, kinds=(TypeError, ValueError, OverflowError, IndexError, AttributeError))


def test_masked_arrays_would_lose_their_mask() -> None:
    masked = np.ma.array(V, mask=[0, 1, 0, 0])
    compiled = corejax.jit(lambda x: x + 1)
    compiled(V)
    for f in (
        *(jnp.asarray, jnp.array, jnp.sum, jnp.sin, jnp.zeros_like, lax.exp, corejax.device_put, compiled),
        *(corejax.grad(jnp.sum), corejax.vmap(jnp.sin), corejax.make_jaxpr(jnp.sin)),
        *(lambda x: x + jnp.ones(4), lambda x: jnp.ones(4) * x, lambda x: jnp.stack([V, x]), lambda x: lax.add(x, V)),
        *(lambda x: jnp.where(x > 0, 1, 2), lambda x: jnp.full(4, x), lambda x: jnp.full(2, x[1])),
    ):
        with pytest.raises(ValueError, match=r"masked arrays are not supported.*pass x\.filled\(value\)"):
            f(masked)
    assert np.isclose(jnp.sum(masked.filled(0)), masked.sum())


def test_arrays_as_python_has_them() -> None:
    """What people do with numbers and sequences works with arrays."""
    x, one = jnp.arange(3), jnp.int32(1)
    assert f"{jnp.float32(1.5):.3f} {one:03d}" == "1.500 001"
    assert [10, 20][one] == 20 and list(range(one)) == [0] and 2 in x and 7 not in x
    assert sorted(jnp.array([3, 1, 2]))[0] == 1 and max(x) == 2 and sum(x) == 3
    assert round(jnp.float32(2.5)).dtype == np.int32 and round(jnp.float32(2.567), 2).dtype == np.float32
    for f in (jnp.sum, jnp.sin, jnp.add, jnp.float32):
        assert pickle.loads(pickle.dumps(f)) is f
    np.testing.assert_array_equal(np.take(x, [0, 2]), [0, 2])
    assert corejax.jit(lambda x: np.dtype(jnp.float32) == jnp.float32)(1.0)


def test_signatures_that_are_no_texts_and_steps_of_zero() -> None:
    refused(lambda: jnp.vectorize(lambda x: x, signature=3)(X), "vectorize: a signature has the form", "got 3")
    refused(lambda: jnp.arange(1, 0, 0), "arange: the step is not 0, got 1, 0, 0", kinds=ZeroDivisionError)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
def test_a_pytree_is_no_array_to_be_like(name: str) -> None:
    wanted = (
        rf"{name} takes an array, or an object with shape and dtype, got dict; for a pytree use .*map\(jnp.{name}, x\)$"
    )
    with pytest.raises(TypeError, match=wanted):
        getattr(jnp, name)({"a": X})
    with pytest.raises(TypeError, match=r"full_like takes an array, .* got object$"):
        jnp.full_like(object(), 1)


def test_vdot_says_its_own_name() -> None:
    with pytest.raises(TypeError, match=r"vdot: .* the same number of elements, got f32\[3,4\] and f32\[4\]"):
        jnp.vdot(X, V)
    assert jnp.vdot(X, X.T).shape == ()


def test_axes_and_configurations_of_products() -> None:
    lhs, rhs, numbers = jnp.ones((1, 4, 32)), jnp.ones((1, 8, 32)), (((2,), (2,)), ((0,), (0,)))
    configs = [corejax.nn.get_scaled_dot_general_config("mxfp8")] * 3
    scaled = corejax.nn.scaled_dot_general
    refused(lambda: scaled(jnp.float32(1), rhs, numbers, configs=configs), "scaled_dot_general", "axis 2")
    refused(lambda: scaled(lhs, rhs * 1j, numbers, configs=configs), "scaled_dot_general", "real numbers, got c64")
    scales = jnp.ones((1, 4, 1)), jnp.ones((1, 8, 1))
    refused(lambda: corejax.nn.scaled_matmul(lhs * 1j, rhs, *scales), "scaled_matmul takes real numbers, got c64")
    for bad in (None, (), {"a": 1}, "ab", 3):
        refused(lambda: scaled(lhs, rhs, bad, configs=configs), "scaled_dot_general", "dimension_numbers")  # noqa: B023
    for bad in ("mxfp8", configs[:1], configs[0], [1, 2]):
        refused(lambda: scaled(lhs, rhs, numbers, configs=bad), "scaled_dot_general", "configs")  # noqa: B023
    refused(
        lambda: lax.ragged_dot_general(X, X.T, I, None), "ragged_dot_general", "RaggedDotDimensionNumbers, got None"
    )
    keys = corejax.random.split(corejax.random.key(0), 3)
    refused(lambda: lax.dot_general(X, keys, (((0,), (0,)), ((), ()))), "dot_general", "key<fry> are not numbers")
    for bad in (None, (None,), "ab", 1.5):
        refused(lambda: lax.rng_bit_generator(np.zeros(4, np.uint32), bad), "rng_bit_generator", "Shapes")  # noqa: B023
        refused(lambda: lax.rng_uniform(0.0, 1.0, bad), "rng_uniform", "Shapes")  # noqa: B023


def test_unsigned_numbers_of_repetitions() -> None:
    repeats = np.array([1, 0, 2, 1], np.uint64)
    np.testing.assert_array_equal(jnp.repeat(V, repeats), V[[0, 2, 2, 3]])


def test_sizes_and_parameters_that_make_no_sense() -> None:
    for function in (jnp.broadcast_shapes, lax.broadcast_shapes):
        refused(lambda: function((2, 1), (-1,)), "broadcast_shapes", "nonnegative, got (2, 1) and (-1,)")  # noqa: B023
    refused(lambda: jnp.kaiser(3, 1j), "kaiser", "beta is a real number, got c64[]")
    refused(lambda: jnp.split(V, {1, 2}), "split", "a sequence of integers, got {1, 2}")
