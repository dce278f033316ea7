"""Hypergeometric functions where series cancel or never end: values and derivatives by parameters, against mpmath's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.scipy.special as special

INF, NAN = math.inf, math.nan
# By mpmath, in 50 digits.
VALUES = [
    ("hyp1f1", (-40.5, 46.75, 21.5), -1.3674527421609413e-11),
    ("hyp1f1", (179.25, 18.0, -530.75), -3.4946375352666736e-146),
    ("hyp1f1", (-4.0, 6.25, 87.25), 10605.198380072863),
    ("hyp1f1", (-30.0, 1.5, 400.0), 5.802460637671176e43),
    ("hyp1f1", (-50.25, -17.5, 30.5), 1.679395475879242e19),
    ("hyp1f1", (0.5, 2.0, -1000000.0), 0.001128378885000615),
    ("hyp1f1", (-0.001, 2.5, 650.0), -2.4064709561087934e272),
    ("hyp1f1", (2.5, 1.5, -1e10), 0.0),
    ("hyp1f1", (10000.0, 2.0, 0.01), 4262832.025740918),
    ("hyp1f1", (0.25, 700.0, -1600.0), 0.7426695573654298),
    ("hyp2f1", (-50.0, 51.0, 1.0, 0.75), -0.03105909923960982),
    ("hyp2f1", (3.0, 2.0, 1.0, -9.25e24), -2.5269974137760847e-75),
    ("hyp2f1", (30.5, -27.25, 12.5, -4.5), 1.4424839622238761e26),
    ("hyp2f1", (150.25, -120.5, 33.0, 0.75), 6.633407323367705e-34),
    ("hyp2f1", (1.0, 1.0, 2.0, 0.9999999), 16.118097263294402),
    ("hyp2f1", (0.5, 0.5, 1.0, -1e30), 2.287061036699344e-14),
    ("hyp2f1", (2.5, 1.5, 4.0, 0.9999847412109375), 46.839205967306924),
    ("hyp2f1", (-3.0, 2.5, -5.0, 4.0), 70.0),
    ("hyp2f1", (0.25, -2.75, 0.5, 0.99993896484375), 0.38354767503080694),
    ("hyp2f1", (7.5, 4.25, 11.75, 0.984375), 862.1261124997872),
    ("hyp2f1", (4.0, 3.0, 2.0, 1.5), -80.0),  # polynomials times whole powers of 1 - x, beyond 1
    ("hyp2f1", (2.0, 2.5, 2.5, 2.0), 1.0),
    ("hyp2f1", (-92.0, 37.5, -8.6875, -0.00390625), -6.899253767148168),
    ("hyp2f1", (-166.75, -0.875, 4.4375, 0.515625), 14.13482758277974),
    ("hyp2f1", (-92.0, 37.5, 8.6875, 0.375), -1.2356474384799801e-15),
]
SLOPES = [
    ("hyp1f1", 0, (-3.0, 2.5, 40.0), -5532192074.562033),
    ("hyp1f1", 0, (0.0, 0.75, -77.0), -5.426392664483647),
    ("hyp1f1", 0, (-2.0, 5.0, 85.5), 2.5354628702682152e25),
    ("hyp1f1", 1, (-4.0, 6.25, 87.25), -6148.748423419682),
    ("hyp1f1", 1, (1.5, -2.25, -30.0), -0.3015132211978151),
    ("hyp2f1", 0, (-3.0, 2.5, 1.25, -9.5), -12073.964356396775),
    ("hyp2f1", 0, (-2.25, -1.0, 5.25, -1e20), 1.9047619047619047e19),
    ("hyp2f1", 1, (0.5, 0.0, 1.25, 0.96875), 0.735220577518482),
    ("hyp2f1", 2, (-2.0, 7.5, 1.25, -4.0), -489.7185185185185),
    ("hyp2f1", 2, (1.5, 0.5, 3.0, 0.9990234375), -0.6418404696297378),
]
# What has no neighbours, or too large ones.
EDGES = [
    ("hyp1f1", (1.0, 0.0, 2.0), INF), ("hyp1f1", (0.0, -2.0, 1.0), INF), ("hyp1f1", (2.5, 1.5, INF), INF),
    ("hyp1f1", (-1.5, 1.5, INF), INF), ("hyp1f1", (-0.5, 1.5, INF), -INF), ("hyp1f1", (0.5, 1.5, -INF), 0.0),
    ("hyp1f1", (-0.5, 1.5, -INF), INF), ("hyp1f1", (1e30, 2.0, 1.0), NAN), ("hyp1f1", (0.0, 2.0, 1e30), 1.0),
    ("hyp1f1", (NAN, 2.0, 0.0), NAN), ("hyp2f1", (1.0, 1.0, -2.0, 0.5), INF), ("hyp2f1", (1.0, 2.0, 3.0, 1.5), INF),
    ("hyp2f1", (1.0, 1.0, 3.0, 1.0), 2.0), ("hyp2f1", (1.0, 1.0, 2.0, 1.0), INF),
    ("hyp2f1", (-1.0, 2.0, 4.0, 9.0), -3.5), ("hyp2f1", (1e30, 1.0, 2.0, 0.5), NAN),
    ("hyp2f1", (0.0, 1e30, 2.0, 0.5), 1.0), ("hyp2f1", (1.0, NAN, 2.0, 0.5), NAN),
    ("hyp2f1", (13.25, 64.75, -40.75, -0.125), NAN), ("hyp2f1", (-1.0, 64.75, -40.75, -0.125), 1 - 64.75 / 8 / 40.75),
    ("hyp2f1", (369.0, 87.75, 1.5, 0.5), NAN), ("hyp2f1", (-30.5, 7.25, -12.5, 1.0), NAN),
]  # fmt: skip
NAMES = ["hyp1f1", "hyp2f1"]
compiled = {name: corejax.jit(getattr(special, name)) for name in NAMES}


def _rows(rows, name):
    found = [row for row in rows if row[0] == name]
    return [np.array(x) for x in zip(*[row[-2] for row in found], strict=True)], np.array([row[-1] for row in found])


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    xs, wanted = _rows(VALUES, name)
    for f in (getattr(special, name), compiled[name]):
        np.testing.assert_allclose(f(*xs), wanted, rtol=3e-11)


def test_derivatives_beyond_one():
    """By the argument as of any rational function; by parameters there are none: values in between are complex."""
    x = jnp.array([4.0, 3.0, 2.0, 1.5], "float64")
    slopes = corejax.grad(lambda p: special.hyp2f1(*p))(x)
    np.testing.assert_allclose(slopes, [NAN, NAN, NAN, 768.0], rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_edges(name):
    xs, wanted = _rows(EDGES, name)
    for f in (getattr(special, name), compiled[name]):
        np.testing.assert_allclose(f(*xs), wanted, rtol=1e-13)


@pytest.mark.parametrize(("name", "position"), [("hyp1f1", 0), ("hyp1f1", 1), *[("hyp2f1", i) for i in range(3)]])
def test_derivatives_by_parameters(name, position):
    """In forward and in reverse mode, at polynomials too, compiled and run."""
    xs, wanted = _rows([row for row in SLOPES if row[1] == position], name)
    f = getattr(special, name)
    slope = corejax.vmap(corejax.grad(f, argnums=position))
    for g in (slope, corejax.jit(slope)):
        np.testing.assert_allclose(g(*xs), wanted, rtol=1e-11)
    ones = [jnp.full(len(wanted), float(i == position), "float64") for i in range(len(xs))]
    np.testing.assert_allclose(corejax.jvp(f, tuple(xs), tuple(ones))[1], wanted, rtol=1e-11)


def test_results_do_not_depend_on_neighbours():
    """Elements that need few steps stay as they are while others go on."""
    for name in NAMES:
        xs, _ = _rows(VALUES, name)
        together = np.asarray(compiled[name](*xs))
        padded = [np.concatenate([x[-1:]] * len(x)) for x in xs]
        np.testing.assert_array_equal(compiled[name](*padded)[0], together[-1])


def test_sizes_and_dtypes():
    for name, count in (("hyp1f1", 3), ("hyp2f1", 4)):
        f = getattr(special, name)
        assert f(*[jnp.zeros((0, 2), "float32")] * count).shape == (0, 2)
        for dtype in ("float16", "bfloat16", "float32"):
            out = f(*[jnp.full((2,), 0.5, dtype)] * count)
            assert out.dtype == dtype and np.isfinite(np.asarray(out, "float64")).all()


@pytest.mark.parametrize(
    "few",
    [
        (NAN, INF, 0.0, -1.0, 2.5, -1e30),
        pytest.param((NAN, INF, -INF, 0, -1, 2.5, 1e30, -1e30, 500.5), marks=pytest.mark.slow),
    ],
    ids=["few", "many"],
)
def test_compiled_ends_quickly_at_every_number(few):
    """Huge and infinite operands, which SciPy takes minutes for."""
    few = np.array(few, float)
    for name, count in (("hyp1f1", 3), ("hyp2f1", 4)):
        xs = [x.ravel() for x in np.meshgrid(*[few] * count, indexing="ij")]
        got = np.asarray(compiled[name](*xs))
        assert not np.isnan(got[np.all([np.abs(x) <= 2.5 for x in xs], axis=0)]).any()


def test_operands_that_are_computed_again() -> None:
    """XLA rounds operands otherwise for each use in a program: where both are equal it is `exp(x)` all the same."""
    b = np.array([[0.9780759517280427, 0.9987313518437315], [0.9782311691214151, 0.9982145437776618]])

    def f(b: Any, x: Any, flag: Any) -> Any:
        e = b * 1.47 + 0.515
        return special.hyp1f1(e + 1.0, jnp.where(flag, 1.5, e) + 1.0, x)

    np.testing.assert_allclose(corejax.jit(f)(b, np.float64(-1), False), np.full((2, 2), np.exp(-1)), rtol=1e-14)


# a, b, x and the value (mpmath): a tiny `a` of whose terms later ones are the large ones, and polynomials of a higher
# degree than `-b`, where sums and recurrences are not right.
KUMMER_ROWS = [
    (1e-20, 7.0, 85.0, 2014977.13839703),
    (1e-20, 2.5, 60.0, 57.85276071701994),
    (2.5, -30.5, 3.0, 0.7918541718035965),
    (-33.0, -30.5, 1.0, 2.9550415933686707),
    (-60.0, -30.5, -1.0, 0.14413788726601504),
    (-60.0, -30.5, 1.0, 7.403262071717324),
    (-60.0, -19.25, -1.0, 0.5535848889455676),
    (-7.0, -3.75, 60.0, -221724564815.83118),
]


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 3e-7), ("float64", 1e-9)])
def test_kummer_of_tiny_and_of_very_negative_parameters(dtype, rtol):
    *operands, wanted = np.array(KUMMER_ROWS).T
    a, b, x = (v.astype(dtype) for v in operands)
    with corejax.enable_x64(dtype == "float64"):
        for f in (special.hyp1f1, corejax.jit(special.hyp1f1)):
            np.testing.assert_allclose(np.asarray(f(a, b, x)), wanted, rtol=rtol)
