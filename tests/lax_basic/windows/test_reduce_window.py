"""Reductions of windows, and their derivatives: against jax, a loop over windows, and each other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
from corejax import lax

jax = pytest.importorskip("jax")


def product(library: Any) -> Callable[[Any, Any], Any]:
    return lambda a, b: library.lax.mul(a, b)


FOLDS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "add": (lambda library: library.lax.add, 0.0),
    "max": (lambda library: library.lax.max, -np.inf),
    "min": (lambda library: library.lax.min, np.inf),
    "any": (product, 1.0),
}
# name: shape, window, strides, padding, other arguments
CASES: dict[str, tuple[Any, Any, Any, Any, dict[str, Any]]] = {
    "pairs": ((5,), (2,), (1,), "VALID", {}),
    "same": ((2, 6, 7), (1, 3, 2), (1, 2, 2), "SAME", {}),
    "all at once": (
        (2, 4, 5), (1, 3, 2), (1, 2, 2), ((0, 0), (1, 2), (2, -1)),
        {"base_dilation": (1, 2, 1), "window_dilation": (1, 2, 3)},
    ),
    "long": ((40,), (33,), (1,), "SAME_LOWER", {}),
    "few long ones": ((40,), (20,), (10,), "VALID", {}),
    "none": ((3,), (5,), (1,), "VALID", {}),
    "of nothing": ((0, 3), (1, 2), (1, 1), "VALID", {}),
}  # fmt: skip
GRID = list(itertools.product(FOLDS, CASES))
COMPILED = [key for key in GRID if key[1] in ("same", "all at once", "of nothing")]


def operand(case: str, batch: int = 0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (batch, *CASES[case][0]) if batch else CASES[case][0]
    return rng.permutation(int(np.prod(shape))).reshape(shape).astype("f") / 8 - 1


def reduced(library: Any, fold: str, case: str) -> Callable[[Any], Any]:
    make, initial = FOLDS[fold]
    _, window, strides, padding, more = CASES[case]
    return lambda x: library.lax.reduce_window(x, np.float32(initial), make(library), window, strides, padding, **more)


def pulled(library: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return library.grad(lambda x: (f(x) ** 2).sum() + f(x).sum())


def test_values_and_tangents_are_those_of_jax() -> None:
    def pushed(library: Any, keys: Any) -> Any:
        return {
            key: library.jvp(reduced(library, *key), (operand(key[1]),), (operand(key[1], seed=1),)) for key in keys
        }

    wanted, ours = jax.jit(lambda: pushed(jax, GRID))(), pushed(corejax, GRID)
    compiled = corejax.jit(lambda: pushed(corejax, COMPILED))()
    for key in GRID:
        for outs in (ours[key], compiled.get(key, ours[key])):
            for got, right in zip(outs, wanted[key], strict=True):
                np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5, err_msg=str(key))


def test_gradients_are_those_of_jax_or_transposed_tangents() -> None:
    ours = {key: pulled(corejax, reduced(corejax, *key))(operand(key[1])) for key in GRID}
    compiled = corejax.jit(
        lambda: {key: pulled(corejax, reduced(corejax, *key))(operand(key[1])) for key in COMPILED}
    )()
    theirs = [key for key in GRID if key[0] != "any" and key[1] in ("pairs", "same", "few long ones")]
    wanted = jax.jit(lambda: {key: pulled(jax, reduced(jax, *key))(operand(key[1])) for key in theirs})()
    for key in GRID:
        x, f = operand(key[1]), reduced(corejax, *key)
        t = operand(key[1], seed=2)
        out, t_out = corejax.jvp(f, (x,), (t,))
        inner = np.nansum((2 * out + 1) * t_out)  # of padding alone an extremum is infinite
        np.testing.assert_allclose((ours[key] * t).sum(), inner, rtol=1e-3, atol=1e-3, err_msg=str(key))
        if key in compiled:
            np.testing.assert_allclose(compiled[key], ours[key], rtol=1e-4, atol=1e-3, err_msg=str(key))
        if key in wanted:
            np.testing.assert_allclose(ours[key], wanted[key], rtol=1e-4, atol=1e-4, err_msg=str(key))


def test_batches_are_those_of_a_loop() -> None:
    for key in GRID:
        f, xs = reduced(corejax, *key), operand(key[1], 3)
        for g in (f, pulled(corejax, f)):
            stacked = np.stack([np.asarray(g(x)) for x in xs])
            np.testing.assert_allclose(corejax.vmap(g)(xs), stacked, rtol=1e-5, atol=1e-5, err_msg=str(key))
            back = corejax.vmap(g, 1, 1)(np.moveaxis(xs, 0, 1))
            np.testing.assert_allclose(back, np.moveaxis(stacked, 0, 1), rtol=1e-5, atol=1e-5, err_msg=str(key))


@given(st.integers(0, 9), st.integers(1, 4), st.integers(1, 4), st.integers(-2, 3), st.integers(-2, 3),
       st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))  # fmt: skip
@settings(max_examples=80)
def test_any_window_is_a_loop(
    n: int, window: int, stride: int, low: int, high: int, base: int, dilation: int, seed: int
) -> None:
    x = np.random.default_rng(seed).integers(-9, 9, (n,))
    spread = np.zeros(((n - 1) * base + 1 if n else 0,), int)
    spread[::base] = x
    present = np.zeros(spread.shape, bool)
    present[::base] = True
    args = ((window,), (stride,), ((low, high),), (base,), (dilation,))
    if len(spread) + low + high < 0:
        with pytest.raises(ValueError, match="drops more elements than"):
            lax.reduce_window(x, 0, lax.add, *args)
        return
    places = np.arange(-low, len(spread) + high)
    starts = range(0, max(0, len(places) - (window - 1) * dilation), stride)
    chosen = [[places[s + k * dilation] for k in range(window)] for s in starts]
    there = [[spread[p] for p in ps if 0 <= p < len(spread) and present[p]] for ps in chosen]
    np.testing.assert_array_equal(lax.reduce_window(x, 0, lax.add, *args), [sum(t) for t in there])
    least = np.iinfo(x.dtype).min
    np.testing.assert_array_equal(
        lax.reduce_window(x, int(least), lax.max, *args), [max(t, default=least) for t in there]
    )


def test_the_second_derivative_of_pooling_is_that_of_jax() -> None:
    x = operand("same")

    def hessian_product(library: Any) -> Any:
        f = reduced(library, "max", "same")
        loss = lambda x: (f(x) ** 3).sum()
        return library.grad(lambda x: (library.grad(loss)(x) * x).sum())(x)

    right = jax.jit(lambda: hessian_product(jax))()
    np.testing.assert_allclose(hessian_product(corejax), right, rtol=1e-5)
    np.testing.assert_allclose(corejax.jit(lambda: hessian_product(corejax))(), right, rtol=1e-5)


def test_ties_go_to_the_first_and_nans_are_kept() -> None:
    x = np.array([1, 1, 0, 0, np.nan, 2, -np.inf, -np.inf], "f")

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (2,), (2,))

    for f in (pool, corejax.jit(pool)):
        np.testing.assert_array_equal(f(x), [1, 0, np.nan, -np.inf])
    for g in (corejax.grad(lambda x: pool(x).sum()), corejax.jit(corejax.grad(lambda x: pool(x).sum()))):
        np.testing.assert_array_equal(g(x), [1, 0, 1, 0, 1, 0, 1, 0])
    for h in (pool, corejax.jit(pool)):
        tangent = corejax.jvp(h, (x,), (np.arange(8, dtype="f"),))[1]
        np.testing.assert_array_equal(tangent, [0, 2, 4, 6])


def test_every_dtype_run_and_compiled() -> None:
    names = ["int4", "int8", "uint16", "int64", "float8_e4m3fn", "bfloat16", "float16", "float64"]
    x = np.array([0, 3, 1, 2, 2, 1])

    def all_of_them() -> Any:
        out = {}
        for name in names:
            v = x.astype(name)
            sums = lax.reduce_window(v, 0, lax.add, (2,))
            (least,) = (lax.reduce_window_max_p.bind(v, **params) for params in [WINDOW])
            out[name] = sums, least
        return out

    for outs in (all_of_them(), corejax.jit(all_of_them)()):
        for name, (sums, greatest) in outs.items():
            assert (sums.dtype, greatest.dtype) == (name, name)
            np.testing.assert_array_equal(np.asarray(sums).astype("f"), [3, 4, 3, 4, 3], err_msg=name)
            np.testing.assert_array_equal(np.asarray(greatest).astype("f"), [3, 3, 3, 2, 2, 2], err_msg=name)
    flags = lax.reduce_window(x > 1, False, lax.max, (2,))
    np.testing.assert_array_equal(flags, [True, True, True, True, True])


WINDOW = {
    "window_dimensions": (3,),
    "window_strides": (1,),
    "padding": ((1, 1),),
    "base_dilation": (1,),
    "window_dilation": (1,),
}


def test_several_arrays_at_once() -> None:
    x = operand("same")
    i = np.arange(x.size, dtype="i").reshape(x.shape)

    def pick(library: Any) -> Any:
        def later(a: Any, b: Any) -> Any:
            first = library.lax.ge(a[0], b[0])
            return tuple(library.lax.select(first, u, v) for u, v in zip(a, b, strict=True))

        initial = (np.float32(-np.inf), np.int32(-1))
        return library.lax.reduce_window((x, i), initial, later, (1, 3, 2), (1, 2, 2), "SAME")

    wanted = jax.jit(lambda: pick(jax))()
    for outs in (pick(corejax), corejax.jit(lambda: pick(corejax))()):
        for got, right in zip(outs, wanted, strict=True):
            np.testing.assert_array_equal(got, right)


def test_an_initial_value_that_is_mapped_or_differentiated() -> None:
    x, initial = operand("pairs"), np.array([1.0, 2.0], "f")

    def f(v: Any) -> Any:
        return lax.reduce_window(x, v, lambda a, b: a * b, (2,), (1,), ((1, 0),))

    stacked = np.stack([np.asarray(f(v)) for v in initial])
    np.testing.assert_allclose(corejax.vmap(f)(initial), stacked, rtol=1e-6)
    # It enters every window, and the first one by padding too.
    slope = x * [2 * 1.5, *x[:-1]]
    np.testing.assert_allclose(corejax.jacobian(f)(np.float32(1.5)), slope, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2)), TypeError, r"window_dimensions \(2, 2\) has length 2"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (0,)), TypeError, r"window_dimensions .*at least 1, got \(0,\)"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (0,)), TypeError, "window_strides"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "SOME"), ValueError, "'SOME'"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), (1,)), ValueError, "pairs of integers"),
        (lambda x: lax.reduce_window((x, x), 0.0, lax.add, (2,)), ValueError, "structure"),
        (lambda x: lax.reduce_window((), (), lax.add, (2,)), ValueError, "no array"),
        (lambda x: lax.reduce_window(x, 0.0, "add", (2,)), TypeError, "computation must be a function of two elements"),
        (lambda x: lax.reduce_window(x, np.int32(0), lambda a, b: a, (2,)), TypeError, "initial value of operand 0"),
        (lambda x: lax.reduce_window(x, 0.0, lambda a, b: a > b, (2,)), TypeError, "these have to be equal"),
        (lambda x: lax.reduce_window(x > 0, False, lax.add, (2,)), TypeError, "reduce_window_sum does not accept"),
    ],
)
def test_what_does_not_fit_is_named(call: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(np.arange(4.0, dtype="f"))
