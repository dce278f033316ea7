"""Making arrays: shapes, dtypes and weak types as jax's, values as NumPy's."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import Array, config, lax, random
from tests.numpy_api.oracle import check, check_types

# -- array, asarray ----------------------------------------------------------------------------------------------

OBJECTS = {
    "float": 1.5,
    "int": 3,
    "bool": True,
    "complex": 1 + 2j,
    "list of ints": [1, 2, 3],
    "nested": [[1.0, 2], [3, 4]],
    "mixed bool": [1, True],
    "empty": [],
    "tuple": (1, 2),
    "empty rows": [[], []],
    "numpy scalar": np.float16(2),
    "numpy scalars": [np.float16(1), 2.0],
    "numpy arrays": [np.zeros(2, np.float32), np.ones(2, np.int32)],
    "int8 array": np.arange(3, dtype=np.int8),
    "bfloat16 array": np.ones(2, ml_dtypes.bfloat16),
    "range": range(3),
}


@pytest.mark.parametrize("obj", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("function", ["array", "asarray"])
def test_out_of_values(function: str, obj: Any) -> None:
    check(lambda xp: getattr(xp, function)(obj))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex64", "bfloat16"])
@pytest.mark.parametrize("obj", [1, 1.5, [0, 1, 2.5], np.arange(3.0, dtype=np.float32)], ids=str)
def test_with_a_dtype(obj: Any, dtype: str) -> None:
    check(lambda xp: xp.asarray(obj, dtype=ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))


def test_explicit_64_bit_types_are_kept() -> None:
    assert jnp.array([1, 2], dtype=np.int64).dtype == np.int64
    assert jnp.asarray(np.arange(3)).dtype == np.int64
    assert jnp.zeros(2, jnp.float64).dtype == np.float64
    assert jnp.array([1.0, np.float64(2)]).dtype == np.float64
    with config.override(x64_compat=True):
        assert jnp.asarray(np.arange(3)).dtype == np.int32
        with pytest.warns(UserWarning, match="float64 is not available in zeros"):
            assert jnp.zeros(2, jnp.float64).dtype == np.float32
        assert jnp.array([1.0, np.float64(2)]).dtype == np.float32


def test_default_width() -> None:
    with config.override(default_dtype_bits=64):
        assert jnp.array([1, 2]).dtype == np.int64
        assert jnp.arange(3.0).dtype == np.float64
        assert jnp.zeros(2).dtype == np.float64
        assert jnp.sum(jnp.ones(3, jnp.int8)).dtype == np.int64
        assert jnp.sin(1).dtype == np.float64
        assert jnp.asarray(2).weak_type


def test_array_copies_what_could_change() -> None:
    given = np.zeros(3, np.float32)
    x = jnp.array(given)
    given[0] = 1
    assert float(x[0]) == 0


def test_ndmin_and_order() -> None:
    assert jnp.array(3.0, ndmin=2).shape == (1, 1)
    assert jnp.array([1, 2], ndmin=1).shape == (2,)
    with pytest.raises(ValueError, match="order"):
        jnp.array([1], order="X")


def test_of_enums_and_array_like_objects() -> None:
    class Size(enum.IntEnum):
        SMALL = 3

    class Wrapped:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.arange(2, dtype=np.float32)

    assert jnp.asarray(Size.SMALL).dtype == np.int32
    assert jnp.asarray(Wrapped()).shape == (2,)
    assert jnp.asarray([[Size.SMALL]]).shape == (1, 1)


def test_of_nested_arrays_and_tracers() -> None:
    x = jnp.ones(2)
    assert jnp.array([x, [1, 2]]).shape == (2, 2)

    def f(x: Any) -> Any:
        return jnp.array([[x, 2 * x], [0, 1]])

    assert corejax.vmap(f)(jnp.arange(3.0)).shape == (3, 2, 2)
    np.testing.assert_array_equal(corejax.jacfwd(f)(3.0), [[1, 2], [0, 0]])
    with pytest.raises(ValueError, match="the same shape"):
        corejax.make_jaxpr(lambda x: jnp.array([x, [x]]))(1.0)


@pytest.mark.parametrize(
    "obj", ["a", b"a", None, ["a"], [None], {}, {"a": 1}, np.array(["x"]), object()], ids=lambda x: type(x).__name__
)
def test_what_is_no_array(obj: Any) -> None:
    with pytest.raises(TypeError):
        jnp.array(obj)


def test_values_that_do_not_fit() -> None:
    with pytest.raises(OverflowError):
        jnp.array(2**40)
    with pytest.raises(OverflowError):
        jnp.array([2**31])
    with pytest.raises(ValueError, match="unequal lengths"):
        jnp.array([[1], [2, 3]])
    for dtype in ("int32", "float32"):
        with pytest.raises(TypeError, match=f"array: the complex number 1j does not become {dtype}; take its real"):
            jnp.array(1j, dtype)


# -- of one value ------------------------------------------------------------------------------------------------

FILLED: list[Callable[[Any], Any]] = [
    lambda xp: xp.zeros(3),
    lambda xp: xp.zeros((), int),
    lambda xp: xp.zeros([2, 0]),
    lambda xp: xp.ones((2,), dtype=bool),
    lambda xp: xp.ones((2, 3), "uint8"),
    lambda xp: xp.full((2,), 1.5, "float16"),
    lambda xp: xp.full((2, 3), np.array([1, 2, 3], "int8")),
    lambda xp: xp.full((2,), np.float32(7)),
    lambda xp: xp.zeros_like(np.arange(3, dtype="int8")),
    lambda xp: xp.ones_like(np.arange(3, dtype="int8"), dtype="float32"),
    lambda xp: xp.full_like(np.arange(2, dtype="int32"), 1.5),
    lambda xp: xp.full_like(np.float32(1.0), 2, shape=(2, 2)),
    lambda xp: xp.zeros_like(np.ones((2, 3), "float32"), shape=4),
]


@pytest.mark.parametrize("f", FILLED)
def test_of_one_value(f: Callable[[Any], Any]) -> None:
    check(f)


@pytest.mark.parametrize(
    "f", [lambda xp: xp.full((2,), 1), lambda xp: xp.full((2,), 1.5), lambda xp: xp.zeros_like(1.0)]
)
def test_python_scalars_give_weak_types(f: Callable[[Any], Any]) -> None:
    assert check_types(f)[0].weak_type


def test_empty_and_like_of_tracers() -> None:
    assert jnp.empty((2, 3)).shape == jnp.empty_like(np.ones((2, 3))).shape == (2, 3)
    assert corejax.make_jaxpr(jnp.ones_like)(jnp.ones((2, 3))).out_avals[0].shape == (2, 3)


def test_shapes_and_axes_are_any_sequence() -> None:
    """Of a class of the user's (TensorFlow Probability has one), a range, an array, the keys of a dictionary."""

    class Sizes:
        def __iter__(self) -> Any:
            return iter((2, 3))

    x = jnp.arange(6.0)
    for sizes in (
        Sizes(),
        range(2, 4),
        jnp.array([2, 3]),
        np.array([2, 3]),
        {2: "a", 3: "b"}.keys(),
        [2, jnp.array(3)],
    ):
        made = jnp.zeros(sizes), jnp.broadcast_to(x[0], sizes), x.reshape(sizes), jnp.reshape(x, sizes)
        drawn = random.normal(random.key(0), sizes), random.bits(random.key(0), sizes)
        assert {y.shape for y in (*made, *drawn, jnp.zeros_like(x, shape=sizes))} == {(2, 3)}
        assert jnp.tile(x, sizes).shape == (2, 18)
        assert jnp.expand_dims(x[None], sizes).shape == lax.expand_dims(x[None], sizes).shape == (1, 6, 1, 1)
        assert jnp.ones((1, 5, 2, 3)).sum(sizes).shape == (1, 5)


@pytest.mark.parametrize("shape", [1.5, (2, 1.0), "ab", None])
def test_shapes_that_are_none(shape: Any) -> None:
    for create in (jnp.zeros, jnp.ones, lambda s: jnp.full(s, np.ones(2)), lambda s: jnp.broadcast_to(1, s)):
        with pytest.raises(TypeError, match="concrete values of integer type"):
            create(shape)


# -- ranges ------------------------------------------------------------------------------------------------------

RANGES: list[Callable[[Any], Any]] = [
    lambda xp: xp.arange(3),
    lambda xp: xp.arange(3.0),
    lambda xp: xp.arange(2.5),
    lambda xp: xp.arange(2, 7),
    lambda xp: xp.arange(2, 7, 2),
    lambda xp: xp.arange(7, 2, -2),
    lambda xp: xp.arange(5, 0),
    lambda xp: xp.arange(0, 1, 0.1),
    lambda xp: xp.arange(1.0, 4.0),
    lambda xp: xp.arange(3, dtype="uint8"),
    lambda xp: xp.arange(0, 5, 2, dtype="float16"),
    lambda xp: xp.arange(np.int8(3)),
    lambda xp: xp.linspace(0, 1, 5),
    lambda xp: xp.linspace(0, 1, 5, endpoint=False),
    lambda xp: xp.linspace(-3, 10, 5, dtype=int),
    lambda xp: xp.linspace(np.zeros(2, "float32"), np.float32(1), 3),
    lambda xp: xp.linspace(np.zeros(2, "float32"), np.float32(1), 3, axis=-1),
    lambda xp: xp.linspace(2, 1, 1),
    lambda xp: xp.linspace(0, 1, 0),
    lambda xp: xp.linspace(0, 1j, 5),
    lambda xp: xp.linspace(0, 1, 5, retstep=True),
    lambda xp: xp.linspace(0, 10, 4, dtype="float16"),
    lambda xp: xp.linspace(0, 3, 4, dtype="float16", retstep=True),
    lambda xp: xp.linspace(0, 1, 3, False, True),
    lambda xp: xp.linspace(np.zeros((2, 2), "float32"), np.ones(2, "float32"), 3, axis=1),
    lambda xp: xp.logspace(0, 2, 5),
    lambda xp: xp.logspace(0, 2, 5, False, 2),
    lambda xp: xp.logspace(np.zeros(2, "float32"), 3, 4, base=3.0, dtype="float16", axis=1),
    lambda xp: xp.logspace(1, 3, 3, dtype=int),
    lambda xp: xp.geomspace(1, 1000, 4),
    lambda xp: xp.geomspace(-1, -16, 5, endpoint=False),
    lambda xp: xp.geomspace(np.array([1, 2], "float32"), 16, 4, axis=-1),
    lambda xp: xp.geomspace(1, 8, 1),
    lambda xp: xp.eye(3),
    lambda xp: xp.eye(3, 4, k=1, dtype=int),
    lambda xp: xp.eye(0),
    lambda xp: xp.identity(2),
    lambda xp: xp.tri(3),
    lambda xp: xp.tri(2, 4, k=-1, dtype="int8"),
    lambda xp: xp.tril(np.ones((2, 3, 4), "float32"), k=1),
    lambda xp: xp.triu(np.arange(12, dtype="int32").reshape(3, 4)),
    lambda xp: xp.triu(np.ones((3, 3), bool), k=-1),
]


@pytest.mark.parametrize("f", RANGES)
def test_ranges(f: Callable[[Any], Any]) -> None:
    check(f, rtol=1e-6)


def test_diagonals_beyond_the_matrix() -> None:
    x = np.arange(1, 7, dtype="float32").reshape(2, 3)
    for k in (-(2**40), -(2**31) - 1, -(2**31), -3, -2, -1, 2, 3, 2**31 - 1, 2**31, 2**40):
        for f in (
            lambda xp, k=k: xp.eye(2, 3, k, dtype="float32"),
            lambda xp, k=k: xp.tri(2, 3, k, dtype="float32"),
            lambda xp, k=k: xp.tril(x, k),
            lambda xp, k=k: xp.triu(x, k),
        ):
            np.testing.assert_array_equal(np.asarray(f(jnp)), f(np))
            np.testing.assert_array_equal(np.asarray(corejax.jit(lambda f=f: f(jnp))()), f(np))


def test_diagonals_of_matrices_of_symbolic_sizes() -> None:
    def parts(xp: Any, x: Any) -> Any:
        return [xp.tril(x, 2**40), xp.triu(x, 1), xp.triu(x, -(2**40)), xp.eye(x.shape[0], k=-1), xp.tril(x, -(2**40))]

    size = corejax.ShapeDtypeStruct(corejax.export.symbolic_shape("n, n"), np.float32)
    exported = corejax.export.export(corejax.jit(lambda x: parts(jnp, x)))(size)
    x = np.arange(1, 10, dtype="float32").reshape(3, 3)
    for found, expected in zip(exported.call(x), parts(np, x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_ends_of_geometric_ranges_are_exact() -> None:
    for args in ((1, 1000, 4), (-7, -343, 3), (3, 3e5), (5, 2, 1), (5, 2, 2), (1, 1000, 3, False), (1, 10, 0)):
        found, expected = np.asarray(jnp.geomspace(*args)), np.geomspace(*args)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        if len(found) > 1 and args[-1] is not False:
            assert (found[0], found[-1]) == (np.float32(args[0]), np.float32(args[1]))
    assert jnp.geomspace(np.array([1, 2]), 1000, 4, dtype="int32", axis=1)[:, -1].tolist() == [1000, 1000]


def test_integer_powers_are_exact() -> None:
    bits = 30
    for compiled in (False, True):
        geometric = lambda: jnp.geomspace(2, 2**bits, bits, dtype="int32")
        logarithmic = lambda: jnp.logspace(1, bits, bits, base=2, dtype="int32")
        for f in (geometric, logarithmic):
            found = (corejax.jit(f) if compiled else f)()
            assert found.tolist() == [2**i for i in range(1, bits + 1)]


def test_ranges_of_small_floats_are_rounded_once() -> None:
    for dtype in ("float16", "bfloat16"):
        first, last = jnp.asarray(0.3, dtype), jnp.asarray(6e4, dtype)
        exponents = np.linspace(float(first), 4.5, 7)
        for made, exact in (
            (jnp.linspace(first, last, 7), np.linspace(float(first), float(last), 7)),
            (jnp.geomspace(first, last, 7), np.geomspace(float(first), float(last), 7)),
            (jnp.logspace(first, jnp.asarray(4.5, dtype), 7), 10**exponents),
        ):
            assert made.dtype == dtype
            np.testing.assert_allclose(np.asarray(made, np.float64), exact, rtol=float(jnp.finfo(dtype).eps) * 0.51)


def test_on_a_device() -> None:
    device = corejax.devices()[0]
    x = jnp.ones(2)
    made = [
        *(jnp.array([1, 2], device=device), jnp.asarray(x, device=device), jnp.astype(x, "int8", device=device)),
        *(jnp.zeros(2, device=device), jnp.ones(2, int, device=device), jnp.empty(2, device=device)),
        *(jnp.full(2, 3, device=device), jnp.full((2, 2), x, device=device), jnp.full_like(x, 1, device=device)),
        *(jnp.zeros_like(x, device=device), jnp.ones_like(x, device=device), jnp.empty_like(x, device=device)),
        *(jnp.arange(2, device=device), jnp.linspace(0, 1, 2, device=device), jnp.eye(2, device=device)),
    ]
    assert all(y.devices() == {device} for y in made)
    assert corejax.jit(lambda: jnp.ones(2, device=device))().devices() == {device}
    with pytest.raises(TypeError, match="device is one of"):
        jnp.ones(2, device="nowhere")


def test_copies() -> None:
    x = np.ones(2, np.float32)
    y = jnp.copy(x)
    x[0] = 3
    assert y.tolist() == [1, 1] and jnp.copy(y, "C") is not y and jnp.asarray(y) is y
    assert jnp.astype(y, jnp.int8, copy=True).dtype == np.int8


def test_lengths_that_are_traced() -> None:
    for create in (jnp.zeros, lambda s: jnp.full(s, np.ones(1)), lambda s: jnp.broadcast_to(1, s)):
        with pytest.raises(TypeError, match=r"(?s)concrete values of integer type.*the value of the argument n"):
            corejax.make_jaxpr(lambda n: create((2, n)))(3)  # noqa: B023
    with pytest.raises(TypeError, match="while tracing the function"):
        corejax.make_jaxpr(lambda n: jnp.arange(n))(3)
    with pytest.raises(TypeError):
        corejax.make_jaxpr(lambda n: jnp.eye(n))(3)


def test_ranges_that_are_none() -> None:
    with pytest.raises(ValueError, match="real numbers"):
        jnp.arange(3 + 0j)
    with pytest.raises(ZeroDivisionError):
        jnp.arange(0, 3, 0)
    with pytest.raises(ValueError, match="not negative"):
        jnp.linspace(0, 1, -1)
    with pytest.raises(TypeError, match=r"logspace: the number of samples is an integer, got 2\.5"):
        jnp.logspace(0, 1, 2.5)
    with pytest.raises(ValueError, match="geomspace: axis 1"):
        jnp.geomspace(1, 2, axis=1)
    with pytest.raises(ValueError, match="at least 2"):
        jnp.tril(jnp.ones(3))
    with pytest.raises(ValueError, match="negative"):
        jnp.eye(-1)


# -- names of dtypes ---------------------------------------------------------------------------------------------


def test_scalar_types_are_dtypes_and_functions() -> None:
    assert jnp.float32 == np.float32 == jnp.float32 == np.dtype("float32") and jnp.int32 != np.float32
    assert np.zeros(2, jnp.bfloat16).dtype == jnp.bfloat16  # NumPy takes them for dtypes
    assert {jnp.float32: 1}[np.float32] == 1
    x = jnp.float32(3)
    assert type(x) is Array and x.dtype == np.float32 and not x.weak_type
    assert corejax.grad(lambda x: jnp.float16(x) * 2.0)(1.0) == 2
    assert repr(jnp.bool_) == "corejax.numpy.bool"


def test_dtype_functions() -> None:
    assert jnp.finfo(jnp.bfloat16).bits == 16 and jnp.iinfo(jnp.int8).max == 127
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and not jnp.issubdtype(jnp.int32, jnp.inexact)
    assert jnp.result_type(jnp.int32, jnp.float16) == np.float16
    assert jnp.promote_types(jnp.float16, jnp.bfloat16) == np.float32
    assert isinstance(jnp.zeros(1), jnp.ndarray)
    assert jnp.newaxis is None and abs(jnp.pi - 3.14159) < 1e-5 and jnp.inf > jnp.e


def test_all_names_are_there() -> None:
    missing = [name for name in jnp.__all__ if not hasattr(jnp, name)]
    assert not missing
    functions = [f for name in jnp.__all__ if callable(f := getattr(jnp, name)) and not isinstance(f, type)]
    assert not [f for f in functions if not (getattr(f, "__doc__", None) or "").strip()]


def test_lists_of_objects_that_stand_for_arrays():
    class Held:
        def __init__(self, value):
            self.value = value

        def __corejax_array__(self):
            return self.value

    held = Held(jnp.arange(2))
    np.testing.assert_array_equal(jnp.array([[held, held], [held, [1.5, 2]]]), [[[0, 1], [0, 1]], [[0, 1], [1.5, 2]]])
    np.testing.assert_array_equal(corejax.jit(lambda x: jnp.array([Held(x), held]))(jnp.ones(2)), [[1, 1], [0, 1]])


@pytest.mark.parametrize("k", [-7, -1, 0, 2, 9])
@pytest.mark.parametrize("f", [lambda x, k: x.eye(3, 4, k), lambda x, k: x.tri(3, 4, k)])
def test_diagonals_that_are_traced(f: Callable[..., Any], k: int) -> None:
    for wanted in (k, np.int8(k)):
        np.testing.assert_array_equal(corejax.jit(lambda k: f(jnp, k))(wanted), f(np, k))


@pytest.mark.parametrize("f", [np.tril, np.triu])
def test_triangles_whose_diagonal_is_traced(f: Callable[..., Any]) -> None:
    x = np.arange(12).reshape(3, 4)
    for k in (-2, 0, 1):
        np.testing.assert_array_equal(corejax.jit(lambda k: getattr(jnp, f.__name__)(x, k))(k), f(x, k))


@pytest.mark.parametrize(("start", "ratio", "num"), [(1, 2, 9), (1, 10, 7), (3, 3, 8), (-5, 7, 6), (100, 2, 5)])
def test_ranges_of_powers_that_are_integers_are_exact(start: int, ratio: int, num: int) -> None:
    wanted = [start * ratio**i for i in range(num)]
    for bits in (32, 64):
        with corejax.config.override(default_dtype_bits=bits):
            for wrap in (lambda f: f, corejax.jit):
                got = wrap(lambda: jnp.geomspace(start, wanted[-1], num, dtype=int))()
                np.testing.assert_array_equal(got, wanted)
                got = wrap(lambda: jnp.logspace(0, num - 1, num, base=ratio, dtype=int))()
                np.testing.assert_array_equal(got, [ratio**i for i in range(num)])
    np.testing.assert_array_equal(jnp.geomspace(1, 100, 4, dtype=int), [1, 4, 21, 100])


def test_what_describes_an_array_is_not_asked_for_its_values() -> None:
    class Described:
        shape = (2, 3)
        dtype = np.dtype(np.float32)

        def __corejax_array__(self) -> Any:
            raise AssertionError("asked for values")

    for x in (Described(), corejax.ShapeDtypeStruct((2, 3), np.float32)):
        np.testing.assert_array_equal(jnp.zeros_like(x), np.zeros((2, 3), np.float32))
        np.testing.assert_array_equal(jnp.full_like(x, 7), np.full((2, 3), 7, np.float32))
    np.testing.assert_array_equal(corejax.lax.full_like(x, 7), np.full((2, 3), 7, np.float32))
