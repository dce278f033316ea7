"""Selections from windows as primitives: their types, and each the transpose of the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.extend import ShapedArray, stage_closed

WINDOWS: dict[str, Any] = {"window_dimensions": (2, 3), "window_strides": (1, 2), "padding": ((1, 0), (0, 1))}
ONES = {"base_dilation": (1, 1), "window_dilation": (1, 1)}
RNG = np.random.default_rng(0)
KEYS = RNG.permutation(20).reshape(4, 5).astype("f")


@pytest.mark.parametrize("select", ["ge", "le"])
def test_gathering_and_scattering_are_transposes(select: str) -> None:
    values = RNG.normal(size=KEYS.shape).astype("f")
    gathered = lax.select_and_gather_add_p.bind(values, KEYS, select=select, **WINDOWS, **ONES)
    source = RNG.normal(size=gathered.shape).astype("f")
    scattered = lax.select_and_scatter_add_p.bind(source, KEYS, select=select, **WINDOWS)
    np.testing.assert_allclose((gathered * source).sum(), (scattered * values).sum(), rtol=1e-5)
    selected = lax.select_and_gather_add_p.bind(KEYS, KEYS, select=select, **WINDOWS, **ONES)
    extreme = lax.reduce_window(
        KEYS,
        -np.inf if select == "ge" else np.inf,
        lax.max if select == "ge" else lax.min,
        *WINDOWS.values(),
    )
    np.testing.assert_array_equal(selected, extreme)


def test_integers_and_narrow_floats_run_and_compiled() -> None:
    def both(dtype: str) -> Any:
        keys = KEYS.astype(dtype)
        gathered = lax.select_and_gather_add_p.bind(keys, keys, select="ge", **WINDOWS, **ONES)
        return gathered, lax.select_and_scatter_add_p.bind(gathered, keys, select="ge", **WINDOWS)

    names = ("int8", "uint8", "int64", "bfloat16", "float64")
    compiled = corejax.jit(lambda: {name: both(name) for name in names})()
    exact = both("int64")
    for name in names:
        for outs in (both(name), compiled[name]):
            for got, right in zip(outs, exact, strict=True):
                assert got.dtype == name
                np.testing.assert_array_equal(np.asarray(got).astype("f"), np.asarray(right).astype("f"))


def test_any_program_selects_and_combines() -> None:
    scalars = [ShapedArray((), KEYS.dtype)] * 2
    programs = {
        "select_jaxpr": stage_closed(lambda x, y: [x <= y], scalars),
        "scatter_jaxpr": stage_closed(lambda x, y: [lax.max(x, y)], scalars),
    }
    windows = {"window_dimensions": (2, 3), "window_strides": (1, 2), "padding": ((0, 0), (0, 0))}
    source = np.arange(1.0, 7.0, dtype="f").reshape(3, 2)

    def f(keys: Any, source: Any, initial: Any) -> Any:
        return lax.select_and_scatter_p.bind(keys, source, initial, **programs, **windows)

    right = np.zeros_like(KEYS)
    for i in range(3):
        for j in range(2):
            part = KEYS[i : i + 2, 2 * j : 2 * j + 3]
            at = np.unravel_index(part.argmin(), part.shape)
            place = (i + at[0], 2 * j + at[1])
            right[place] = max(right[place], source[i, j])
    zero = np.float32(0)
    np.testing.assert_array_equal(f(KEYS, source, zero), right)
    two = np.stack([KEYS, KEYS])
    np.testing.assert_array_equal(corejax.vmap(f, (0, None, None))(two, source, zero), np.stack([right, right]))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda p, q: p.bind(KEYS[1:], KEYS, select="ge", **WINDOWS, **ONES), TypeError, "must have the same shape"),
        (lambda p, q: p.bind(KEYS, KEYS, select="gt", **WINDOWS, **ONES), ValueError, "'ge' or 'le', got 'gt'"),
        (lambda p, q: p.bind(KEYS.astype("F"), KEYS.astype("F"), select="ge", **WINDOWS, **ONES), TypeError, "complex"),
        (lambda p, q: q.bind(KEYS, KEYS, select="ge", **WINDOWS), TypeError, r"each window.*\(4, 2\)"),
        (lambda p, q: q.bind(KEYS.astype("d"), KEYS, select="ge", **WINDOWS), TypeError, "float64"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(lax.select_and_gather_add_p, lax.select_and_scatter_add_p)


def test_derivatives_of_any_program_follow_what_it_selects() -> None:
    scalars = [ShapedArray((), KEYS.dtype)] * 2
    programs = {
        "select_jaxpr": stage_closed(lambda x, y: [x >= y], scalars),
        "scatter_jaxpr": stage_closed(lambda x, y: [x + y], scalars),
    }
    source = RNG.normal(size=(4, 3)).astype("f")

    def general(source: Any) -> Any:
        return lax.select_and_scatter_p.bind(KEYS, source, np.float32(0), **programs, **windows)

    def special(source: Any) -> Any:
        return lax.select_and_scatter_add_p.bind(source, KEYS, select="ge", **windows)

    windows = {**WINDOWS, "padding": ((1, 0), (1, 1))}
    np.testing.assert_allclose(general(source), special(source), rtol=1e-6)
    for f, g in ((general, special), (corejax.jit(general), special)):
        pulled = [corejax.grad(lambda s, h=h: (h(s) ** 2).sum())(source) for h in (f, g)]
        np.testing.assert_allclose(*pulled, rtol=1e-5)
