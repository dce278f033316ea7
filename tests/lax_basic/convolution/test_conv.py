"""conv_general_dilated: against jax, and against a loop over windows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
from corejax import lax
from corejax_lax_basic.convolution._on_host import convolve

jax = pytest.importorskip("jax")

LAST = ("NHWC", "HWIO", "NHWC")
MIXED = ("HNWC", "IWOH", "NWCH")
# name: shapes of both operands, strides, padding, other arguments
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, Any, dict[str, Any]]] = {
    "one axis": ((2, 3, 5), (4, 3, 2), (1,), "VALID", {}),
    "no axis": ((6, 4), (5, 4), (), "VALID", {}),
    "same, strides": ((2, 3, 8, 7), (4, 3, 2, 3), (2, 1), "SAME", {}),
    "same, lower": ((2, 3, 8, 7), (4, 3, 2, 4), (2, 3), "SAME_LOWER", {"rhs_dilation": (2, 1)}),
    "all at once": (
        (2, 3, 8, 7), (4, 3, 2, 3), (2, 1), ((1, -1), (3, 2)), {"lhs_dilation": (2, 3), "rhs_dilation": (1, 2)},
    ),
    "three axes": ((1, 2, 3, 4, 3), (2, 2, 2, 1, 3), (1, 2, 1), "SAME", {}),
    "channels last": ((2, 5, 4, 3), (3, 2, 3, 4), (1, 2), "SAME", {"dimension_numbers": LAST}),
    "mixed axes": ((5, 2, 4, 3), (3, 2, 4, 3), (1, 2), "SAME", {"dimension_numbers": MIXED}),
    "feature groups": ((2, 6, 5, 4), (4, 3, 2, 3), (2, 3), "SAME", {"feature_group_count": 2}),
    "depthwise": ((2, 5, 4, 3), (3, 3, 1, 6), (1, 1), "SAME", {"feature_group_count": 3, "dimension_numbers": LAST}),
    "batch groups": ((6, 3, 5, 4), (4, 3, 2, 3), (2, 3), "SAME", {"batch_group_count": 2}),
    "batch groups, mixed axes": (
        (5, 6, 4, 3), (3, 2, 4, 3), (1, 2), "VALID", {"batch_group_count": 2, "dimension_numbers": MIXED},
    ),
    "windows beyond": ((2, 3, 1), (4, 3, 2), (1,), "VALID", {}),
    "dropped": ((1, 2, 6), (2, 2, 2), (2,), ((-2, -1),), {"lhs_dilation": (2,)}),
    "empty batch": ((0, 3, 5), (4, 3, 2), (1,), "VALID", {}),
    "no features": ((2, 0, 5), (4, 0, 2), (1,), "VALID", {}),
}  # fmt: skip

COMPILED = ("all at once", "mixed axes", "feature groups", "batch groups", "no axis", "no features")


def operands(name: str, batch: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(len(name))
    lead = (batch,) if batch else ()
    lhs, rhs = CASES[name][:2]
    return rng.normal(size=(*lead, *lhs)).astype("f"), rng.normal(size=(*lead, *rhs)).astype("f")


def convolution(library: Any, name: str) -> Callable[[Any, Any], Any]:
    _, _, strides, padding, more = CASES[name]
    return lambda x, y: library.lax.conv_general_dilated(x, y, strides, padding, **more)


def gradients(library: Any, name: str) -> Callable[[Any, Any], Any]:
    f = convolution(library, name)

    def loss(x: Any, y: Any) -> Any:
        out = f(x, y)
        return (out * out).sum() + out.sum()

    return library.grad(loss, (0, 1))


def close(name: str, got: Any, right: Any) -> None:
    np.testing.assert_allclose(got, right, rtol=2e-5, atol=2e-4, err_msg=name)


def test_values_and_gradients_are_those_of_jax() -> None:
    def both(library: Any) -> Any:
        return {n: [convolution(library, n)(*operands(n)), *gradients(library, n)(*operands(n))] for n in CASES}

    wanted, ours = jax.jit(lambda: both(jax))(), both(corejax)
    for name in CASES:
        for got, right in zip(ours[name], wanted[name], strict=True):
            close(name, got, right)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_batches_of_values_and_gradients_are_those_of_a_loop(axes: Any) -> None:
    def batch(name: str) -> Any:
        return [operands(name, 2)[i] if axis == 0 else operands(name)[i] for i, axis in enumerate(axes)]

    def one(name: str) -> Callable[[Any, Any], list[Any]]:
        return lambda x, y: [convolution(corejax, name)(x, y), *gradients(corejax, name)(x, y)]

    programs = {name: corejax.vmap(one(name), axes) for name in CASES}
    some = COMPILED if axes == (0, 0) else ()  # which has all that the other two have
    compiled = corejax.jit(lambda: {name: programs[name](*batch(name)) for name in some})()
    for name, f in programs.items():
        xy = batch(name)
        turns = [one(name)(*(v[i] if axis == 0 else v for v, axis in zip(xy, axes, strict=True))) for i in range(2)]
        for outs in (f(*xy), *([compiled[name]] if name in compiled else [])):
            for got, right in zip(outs, zip(*turns, strict=True), strict=True):
                close(name, got, np.stack([np.asarray(v) for v in right]))


def test_a_second_derivative() -> None:
    name = "all at once"
    x, y = operands(name)

    def through(library: Any) -> Any:
        f = convolution(library, name)
        inner = library.grad(lambda x, y: (f(x, y) ** 3).sum())
        return library.grad(lambda x, y: (inner(x, y) ** 2).sum(), 1)(x, y)

    np.testing.assert_allclose(through(corejax), jax.jit(lambda: through(jax))(), rtol=2e-4)


def by_loop(x: Any, y: Any, strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any) -> Any:
    """`(N, C, ...)` with `(O, C, ...)`, window by window."""

    def spread(a: Any, dilation: Any) -> Any:
        out = np.zeros(
            (*a.shape[:2], *((n - 1) * d + 1 if n else 0 for n, d in zip(a.shape[2:], dilation, strict=True))), a.dtype
        )
        out[(slice(None), slice(None), *(slice(None, None, d) for d in dilation))] = a
        return out

    x, y = spread(x, lhs_dilation), spread(y, rhs_dilation)
    cut = tuple(slice(max(0, -lo), n - max(0, -hi)) for n, (lo, hi) in zip(x.shape[2:], padding, strict=True))
    x = np.pad(x[(slice(None), slice(None), *cut)], ((0, 0), (0, 0), *((max(0, a), max(0, b)) for a, b in padding)))
    counts = [max(0, (n - k) // s + 1) for n, k, s in zip(x.shape[2:], y.shape[2:], strides, strict=True)]
    out = np.zeros((x.shape[0], y.shape[0], *counts), x.dtype)
    for place in itertools.product(*map(range, counts)):
        window = tuple(slice(i * s, i * s + k) for i, s, k in zip(place, strides, y.shape[2:], strict=True))
        out[(slice(None), slice(None), *place)] = np.tensordot(
            x[(slice(None), slice(None), *window)], y, (range(1, x.ndim), range(1, x.ndim))
        )
    return out


@st.composite
def configurations(draw: Any) -> Any:
    nd = draw(st.integers(0, 2))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(nd))

    n, c, o = (draw(st.integers(0, 3)) for _ in range(3))
    size, kernel, lhs_dilation = each(1, 6), each(1, 3), each(1, 3)
    padding = tuple((lo, max(hi, -lo - (d - 1) * (m - 1))) for lo, hi, m, d in
                    zip(each(-1, 2), each(-1, 2), size, lhs_dilation, strict=True))  # fmt: skip
    return (n, c, *size), (o, c, *kernel), each(1, 3), padding, lhs_dilation, each(1, 3)


@given(configurations(), st.integers(0, 9))
@settings(max_examples=60)
def test_any_configuration_is_a_loop_over_windows(configuration: Any, seed: int) -> None:
    lhs, rhs, strides, padding, lhs_dilation, rhs_dilation = configuration
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-5, 6, lhs), rng.integers(-5, 6, rhs)
    params = (strides, padding, lhs_dilation, rhs_dilation)
    got = lax.conv_general_dilated(x, y, *params)
    np.testing.assert_array_equal(got, by_loop(x, y, *params))
    assert got.shape == jax.eval_shape(lambda x, y: jax.lax.conv_general_dilated(x, y, *params), x, y).shape


# -- dtypes ------------------------------------------------------------------------------------------------------

DTYPES = (
    *("bool", "int4", "uint4", "int8", "uint8", "int16", "int32", "uint64"),
    *("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
)


def test_every_dtype_is_exact_run_and_compiled() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (2, 2, 5)), rng.integers(0, 2, (2, 2, 2))
    exact = by_loop(x, y, (2,), ((1, 1),), (1,), (1,))
    given_ = {name: (x.astype(name), y.astype(name)) for name in DTYPES}

    def all_of_them(values: Any) -> Any:
        return {name: lax.conv_general_dilated(*xy, (2,), ((1, 1),)) for name, xy in values.items()}

    compiled = corejax.jit(all_of_them)(given_)
    for name, out in all_of_them(given_).items():
        right = exact.astype(bool) if name == "bool" else exact.astype(name)
        if name in ("int4", "uint4"):  # wraps around
            right = exact.astype(np.int8).astype(name)
        for got in (out, compiled[name]):
            assert got.dtype == name
            np.testing.assert_array_equal(np.asarray(got), right, err_msg=name)


@pytest.mark.parametrize(
    ("dtype", "preferred"), [("int8", "int8"), ("int8", "int32"), ("uint8", "uint8"), ("int32", "int64")]
)
def test_many_products_of_integers_are_exact_and_wrap(dtype: str, preferred: str) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    x, y = (rng.integers(info.min, int(info.max) + 1, shape).astype(dtype) for shape in ((2, 6, 12, 12), (10, 6, 3, 3)))
    out = lax.conv_general_dilated(x, y, (1, 1), "VALID", preferred_element_type=preferred)
    view = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (3, 3), (2, 3))
    exact = np.einsum("nchwij,ocij->nohw", view, y.astype(np.int64))
    np.testing.assert_array_equal(out, exact.astype(preferred), strict=True)


@pytest.mark.parametrize(
    ("dtype", "preferred"), [("bfloat16", "float32"), ("int8", "int32"), ("int8", "float32"), ("float32", "float64")]
)
def test_sums_are_of_the_preferred_type(dtype: str, preferred: str) -> None:
    x, y = np.full((1, 1, 300), 3).astype(dtype), np.full((1, 1, 300), 7).astype(dtype)

    def f(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(x, y, (1,), "VALID", preferred_element_type=preferred)

    for out in (f(x, y), corejax.jit(f)(x, y)):
        assert (out.dtype, out.item()) == (preferred, 6300)
    if np.dtype(dtype).kind == "V" or dtype == "float32":
        ct = corejax.grad(lambda x: f(x, y).sum())(x)
        assert ct.dtype == dtype and (np.asarray(ct).astype("f") == 7).all()


def test_weak_types_are_kept_where_both_are_weak() -> None:
    weak = corejax.numpy.asarray(2.0).reshape(1, 1, 1)
    strong = corejax.numpy.ones((1, 1, 1))
    assert lax.conv(weak, weak, (1,), "VALID").weak_type
    assert not lax.conv(weak, strong, (1,), "VALID").weak_type


def test_a_large_one_is_the_compiled_program_and_the_same() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 16, 32, 32)).astype("f"), rng.normal(size=(8, 16, 3, 3)).astype("f")
    got = lax.conv_general_dilated(x, y, (1, 1), "SAME")
    params = corejax.make_jaxpr(lambda x, y: lax.conv_general_dilated(x, y, (1, 1), "SAME"))(x, y).eqns[0].params
    np.testing.assert_allclose(got, convolve(x, y, **params), rtol=1e-4, atol=1e-4)


# -- errors ------------------------------------------------------------------------------------------------------

X, Y = np.zeros((2, 4, 5, 5), "f"), np.zeros((6, 4, 3, 3), "f")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lax.conv_general_dilated(X, Y[0], (1, 1), "SAME"), TypeError, "must have the same rank"),
        (lambda: lax.conv_general_dilated(X, Y.astype("d"), (1, 1), "SAME"), TypeError, "float32 .* float64"),
        (lambda: lax.conv_general_dilated(X, Y, (1,), "SAME"), TypeError, r"window_strides \(1,\) has length 1"),
        (
            lambda: lax.conv_general_dilated(X, Y, (1, 0), "SAME"),
            TypeError,
            r"window_strides .*at least 1, got \(1, 0\)",
        ),
        (lambda: lax.conv_general_dilated(X, Y, (1, 1.5), "SAME"), TypeError, "sequence of integers"),
        (lambda: lax.conv_general_dilated(X, Y, (1, 1), "EQUAL"), ValueError, "'SAME', 'SAME_LOWER', 'VALID'"),
        (lambda: lax.conv_general_dilated(X, Y, (1, 1), ((1, 1),)), TypeError, "a pair for each of 2 axes"),
        (lambda: lax.conv_general_dilated(X, Y, (1, 1), (1, 1)), ValueError, "pairs of integers, got"),
        (lambda: lax.conv_general_dilated(X, Y, (1, 1), ((-4, -4), (0, 0))), ValueError, "drops more elements than"),
        (lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", (2, 1)), ValueError, "conv_transpose"),
        (lambda: lax.conv_general_dilated(X, Y[:, :3], (1, 1), "SAME"), ValueError, "4 features in 1 groups.*takes 3"),
        (
            lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", feature_group_count=3),
            ValueError,
            "feature_group_count 3 does not divide the 4",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", batch_group_count=3),
            ValueError,
            "batch_group_count 3 does not divide the batch 2",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", feature_group_count=2, batch_group_count=2),
            ValueError,
            "has to be 1",
        ),
        (lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", feature_group_count=0), ValueError, "positive integer"),
        (
            lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHC")),
            TypeError,
            r"dimension_numbers\[2\]",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWW")),
            TypeError,
            r"dimension_numbers\[2\].*'C'",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHXC")),
            TypeError,
            "spatial letters",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1, 1), "SAME", preferred_element_type="int32"),
            TypeError,
            "drops the fractions",
        ),
    ],
)
def test_what_does_not_fit_is_named(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_narrow_floats_are_summed_in_float32() -> None:
    x = np.full((1, 1, 600), 1.0, ml_dtypes.bfloat16)
    assert lax.conv(x, x, (1,), "VALID").item() == 600


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("length", "reach"), [(1, 1), (2, 5), (5, 2), (7, 7), (17, 3)])
def test_one_sequence_is_as_two(length: int, reach: int, dtype: type) -> None:
    """NumPy correlates one sequence with one kernel by itself; a batch goes the way of all convolutions."""
    numbers = np.random.default_rng(length + reach)
    with corejax.enable_x64():
        x, kernel = numbers.normal(size=(1, 1, length)).astype(dtype), numbers.normal(size=(1, 1, reach)).astype(dtype)
        for low in range(-2, reach + 1):
            for high in range(-2, reach + 1):
                if length + low + high < reach:
                    continue
                one = lax.conv_general_dilated(x, kernel, (1,), [(low, high)])
                two = lax.conv_general_dilated(np.concatenate([x, x]), kernel, (1,), [(low, high)])
                assert one.dtype == dtype and one.shape == (1, 1, length + low + high - reach + 1)
                np.testing.assert_allclose(one, two[:1], rtol=1e-4, atol=1e-5)


@pytest.mark.sampled
@pytest.mark.parametrize("padding", [(-2, 2), (-1, 1), (2, -2), (-9, 9), (-1, -1)])
@pytest.mark.parametrize("groups", [1, 4])
def test_one_end_is_cut_and_the_other_padded(padding: tuple[int, int], groups: int) -> None:
    """XLA on CPUs reads beyond the operand."""
    numbers = np.random.default_rng(0)
    x, kernel = (numbers.integers(-3, 4, shape).astype(np.float32) for shape in ((8, 8, 16), (4, 8 // groups, 8)))
    for options in ({}, {"window_strides": (2,)}, {"lhs_dilation": (2,)}):
        options = {"window_strides": (1,), "padding": [padding], "feature_group_count": groups} | options
        compiled = corejax.jit(lambda x, kernel: lax.conv_general_dilated(x, kernel, **options))  # noqa: B023
        np.testing.assert_array_equal(compiled(x, kernel), lax.conv_general_dilated(x, kernel, **options))
