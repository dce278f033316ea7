"""Functions of elements: values as NumPy's, dtypes and weak types as jax's, for every kind of operand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import corejax.numpy as jnp
from corejax import jit, vmap
from tests.numpy_api.oracle import assert_close, check, check_against_jax, check_types

DTYPES = ["bool", "uint8", "int8", "int32", "float16", "bfloat16", "float32", "complex64"]
SPECIAL = [0.0, -0.0, 1.0, -1.5, 2.5, 1e-4, np.inf, -np.inf, np.nan]

ANY_DTYPE = ["absolute", "positive", "real", "imag", "conjugate"]
ANY_DTYPE += ["logical_not", "isfinite", "isinf", "isnan", "square"]
NUMBERS = ["negative", "sign"]
FLOATING = ["sin", "cos", "tan", "tanh", "exp", "exp2", "expm1"]
FLOATING += ["log", "log2", "log10", "log1p", "sqrt", "degrees", "radians"]
ROUNDING = ["floor", "ceil", "trunc"]


def sample(dtype: str, shape: tuple[int, ...] = (2, 3), seed: int = 0) -> np.ndarray:
    """Some numbers of a dtype; small ones, zeros and negative ones among them."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-4, 5, shape) + (0.25 if "float" in dtype or "complex" in dtype else 0)
    if dtype in ("bool", "uint8"):
        values = np.abs(values) % (2 if dtype == "bool" else 5)
    if dtype == "complex64":
        return (values + 1j * rng.integers(-3, 4, shape)).astype(dtype)
    return values.astype(jnp.result_type(dtype))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ANY_DTYPE, *NUMBERS])
def test_functions_of_any_dtype(name: str, dtype: str) -> None:
    if (name == "negative" and dtype == "bool") or (name in ("sign", "positive") and dtype in ("bool", "complex64")):
        pytest.skip("refused, or unlike NumPy's")
    if name == "square" and dtype == "bool":
        check_types(lambda xp, x: xp.square(x), sample(dtype))
    else:
        check(lambda xp, x: getattr(xp, name)(x), sample(dtype))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FLOATING)
def test_floating_functions(name: str, dtype: str) -> None:
    x = sample(dtype)
    if name.startswith(("log", "sqrt")) and dtype != "complex64":
        x = np.abs(x)
    if dtype == "complex64" and name in ("degrees", "radians", "exp2"):
        pytest.skip("not defined by NumPy")
    ours = check_types(lambda xp, x: getattr(xp, name)(x), x)
    with np.errstate(all="ignore"):
        wide = x.astype(np.complex128 if dtype == "complex64" else np.float64)
        assert_close(ours[0], getattr(np, name)(wide), 3e-2 if "16" in dtype else None)


@pytest.mark.parametrize("name", [*ANY_DTYPE, *NUMBERS, *FLOATING, *ROUNDING])
def test_special_values(name: str) -> None:
    check(lambda xp, x: getattr(xp, name)(x), np.array(SPECIAL, np.float32))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float16", "float32"])
@pytest.mark.parametrize("name", ROUNDING)
def test_rounding(name: str, dtype: str) -> None:
    check(lambda xp, x: getattr(xp, name)(x), sample(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reciprocal(dtype: str) -> None:
    x = sample(dtype) if dtype != "bool" else np.ones(2, bool)
    (ours,) = check_types(lambda xp, x: xp.reciprocal(x), x)
    with np.errstate(all="ignore"):
        assert_close(ours, 1 / x.astype("complex64" if dtype == "complex64" else "float32"), 1e-2)


def test_sign_of_complex_numbers() -> None:
    check_against_jax(lambda xp, x: xp.sign(x), np.array([3 + 4j, 0, -2j], np.complex64))


# -- two arguments -----------------------------------------------------------------------------------------------

ARITHMETIC = ["add", "subtract", "multiply", "divide", "floor_divide"]
ARITHMETIC += ["remainder", "power", "maximum", "minimum", "fmod", "float_power"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor"]

PAIRS = [
    ("int32", "int32"),
    ("int8", "uint8"),
    ("uint8", "int32"),
    ("bool", "int8"),
    ("int32", "float32"),
    ("int32", "float16"),
    ("float16", "bfloat16"),
    ("bfloat16", "float32"),
    ("float32", "float32"),
]
SCALARS = [True, 2, 2.0, np.int8(2), np.float32(2.0)]


@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS, *LOGICAL])
def test_binary_functions(name: str, dtypes: tuple[str, str]) -> None:
    x, y = sample(dtypes[0]), sample(dtypes[1], (3,), seed=1)
    if name == "power":
        y = np.abs(y)
    if name in ("floor_divide", "remainder", "fmod", "divide"):
        y = np.where(y == 0, 1, y).astype(y.dtype)
    (ours,) = check_types(lambda xp, x, y: getattr(xp, name)(x, y), x, y)
    with np.errstate(all="ignore"):
        wide = ours.dtype if name not in COMPARISONS + LOGICAL else jnp.promote_types(x.dtype, y.dtype)
        wide = np.float64 if wide.kind in "fV" else wide
        assert_close(ours, getattr(np, name)(x.astype(wide), y.astype(wide)), 3e-2 if "16" in ours.dtype.name else None)


@pytest.mark.sampled
@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_scalars_yield_to_arrays(name: str, dtype: str, scalar: object) -> None:
    x = np.abs(sample(dtype)) + np.ones((), dtype)
    weak = name != "power"  # a static or an integer exponent makes a difference there
    if not (name == "power" and scalar is True):  # which jax takes for a static exponent
        check_types(lambda xp, x: getattr(xp, name)(x, scalar), x, weak=weak)
    check_types(lambda xp, x: getattr(xp, name)(scalar, x), x, weak=weak)


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("pair", [(1, 2), (3, 2.0), (True, 2), (7.5, 2)], ids=repr)
def test_two_python_scalars_are_weakly_typed(name: str, pair: tuple[float, float]) -> None:
    if name == "power" and pair[0] is True:
        pytest.skip("strongly typed in jax")
    check(lambda xp: getattr(xp, name)(*pair))


@pytest.mark.parametrize("name", [*BITWISE, *LOGICAL])
@pytest.mark.parametrize("dtypes", [("bool", "bool"), ("bool", "int8"), ("uint8", "uint8"), ("int32", "int8")])
def test_bitwise_functions(name: str, dtypes: tuple[str, str]) -> None:
    check(lambda xp, x, y: getattr(xp, name)(x, y), sample(dtypes[0]), sample(dtypes[1], seed=1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_inversion(dtype: str) -> None:
    check(lambda xp, x: xp.bitwise_not(x), sample(dtype))


@pytest.mark.parametrize("name", [*ARITHMETIC[:4], *ARITHMETIC[7:9], *COMPARISONS])
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0), st.data())
def test_broadcasting(name: str, shapes: hnp.BroadcastableShapes, data: st.DataObject) -> None:
    elements = st.integers(-3, 3).map(float)
    x, y = (data.draw(hnp.arrays(np.float32, shape, elements=elements)) for shape in shapes.input_shapes)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    ours = getattr(jnp, name)(x, y)
    assert ours.shape == shapes.result_shape and ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours, expected)


def test_divmod() -> None:
    check(lambda xp, x, y: xp.divmod(x, y), np.array([7, -7, 7, -7]).astype("int32"), np.array([2, 2, -2, -2], "int32"))
    check(lambda xp, x: xp.divmod(x, 0.7), np.array([2.5, -2.5], "float32"))


# -- where, clip, isclose ----------------------------------------------------------------------------------------

MASK = np.array([[True, False, True], [False, False, True]])


@pytest.mark.parametrize("condition", [MASK, MASK[0], MASK.astype("float32"), True, 0], ids=str)
@pytest.mark.parametrize(
    "values", [(sample("float32"), 0), (1, sample("int8")), (sample("int8"), sample("float16", (3,)))]
)
def test_where(condition: object, values: tuple[object, object]) -> None:
    ours = check_types(lambda xp, c, x, y: xp.where(c, x, y), condition, *values)
    np.testing.assert_array_equal(ours[0], np.where(np.asarray(condition) != 0, *values))


def test_where_of_scalars() -> None:
    check_types(lambda xp: xp.where(True, 1, 2.0))
    check_types(lambda xp, c: xp.where(c, 1, 2), MASK)
    for call in (lambda: jnp.where(MASK, None, 1), lambda: jnp.where(MASK, 1)):
        with pytest.raises(ValueError, match="both x and y, or neither"):
            call()
    with pytest.raises(ValueError, match="go with the condition alone"):
        jnp.where(MASK, 1, 2, size=3)
    with pytest.raises(ValueError, match="broadcast"):
        jnp.where(MASK, jnp.ones(2), 1)


@pytest.mark.parametrize("bounds", [(1, 2), (None, 2.5), (-1, None), (3, 1), (0.5, 2)], ids=repr)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "uint8"])
def test_clip(dtype: str, bounds: tuple[float | None, float | None]) -> None:
    if not (dtype == "uint8" and bounds[0] == -1):  # which wraps in jax
        check_types(lambda xp, x: xp.clip(x, *bounds), sample(dtype))
    if dtype == "float32":
        check(lambda xp, x: xp.clip(x, *bounds), np.array(SPECIAL, np.float32))


def test_integers_beyond_those_of_the_dtype() -> None:
    for dtype in ("uint8", "int8", "int32", "uint64", "int64"):
        x = np.array([0, 1, 100], dtype)
        for k in (-(2**70), -(2**40), -129, -1, 128, 256, 2**40, 2**70):
            for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
                for args in ((x, k), (k, x)):
                    found = getattr(jnp, name)(*args)
                    assert found.dtype == bool and found.tolist() == getattr(np, name)(*args).tolist(), (dtype, k, name)
            assert (jnp.asarray(x) > k).tolist() == jit(lambda x: x > k)(x).tolist() == (x > k).tolist()  # noqa: B023
        for y in (jnp.clip(x, -(2**70), 2**70), jnp.asarray(x).clip(-(2**70), 2**70)):
            assert y.dtype == x.dtype and y.tolist() == x.tolist()
        for bounds in ((2**70, None), (None, -(2**70))):
            with pytest.raises(OverflowError, match="clip: Python number"):
                jnp.clip(x, *bounds)
    below = jit(vmap(lambda row: row < 300))(np.ones((2, 3), "uint8"))
    assert below.shape == (2, 3) and below.all()


def test_isclose_and_allclose() -> None:
    x = np.array([1.0, 1.0, np.inf, np.nan, 0.0], np.float32)
    y = np.array([1.0 + 1e-6, 1.1, np.inf, np.nan, 1e-9], np.float32)
    check(lambda xp, x, y: xp.isclose(x, y), x, y)
    check(lambda xp, x, y: xp.isclose(x, y, equal_nan=True), x, y)
    for rtol, atol in ((np.nan, np.inf), (np.inf, np.nan), (0, np.inf), (-1, -1), (0, 0)):
        check(lambda xp, x, y: xp.isclose(x, y, rtol=rtol, atol=atol), x, y)  # noqa: B023
    check(lambda xp, x: xp.allclose(x, x + 1), np.arange(3, dtype="int32"))
    assert bool(jnp.array_equal(jnp.arange(3), np.arange(3))) and not bool(
        jnp.array_equal(jnp.arange(3), jnp.arange(4))
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.negative(True),
        lambda: jnp.subtract(True, True),
        lambda: jnp.bitwise_and(1.0, 2),
        lambda: jnp.add([1], 2),
        lambda: jnp.sin("1"),
        lambda: jnp.exp(None),
    ],
)
def test_what_is_refused(call: object) -> None:
    with pytest.raises(TypeError):
        call()  # type: ignore[operator]


def test_messages() -> None:
    with pytest.raises(TypeError, match=r"add takes arrays and scalars, got list at position 1; .*asarray"):
        jnp.add(1, [2])
    with pytest.raises(ValueError, match="Complex values have no ordering"):
        jnp.clip(1j, 0, 1)
    with pytest.raises(ValueError, match=r"maximum: Incompatible shapes .*: operands f32\[2,3\] and f32\[2\]"):
        jnp.maximum(jnp.ones((2, 3)), jnp.ones(2))
