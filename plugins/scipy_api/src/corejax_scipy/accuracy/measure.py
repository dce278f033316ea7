"""Measure errors of special functions in units in the last place, run and compiled, against SciPy in float64."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax_scipy import special
from corejax_scipy.accuracy.domains import points
from corejax_scipy.special._rows import ROWS


class Measured(NamedTuple):
    """The errors of one function in one dtype and one mode.

    Attributes:
        function: the name of the function.
        dtype: the name of the dtype.
        mode: "run" or "compiled".
        median: the median error in ulp.
        most: the largest error in ulp.
        where: the point of the largest error.
        lost: the number of points at which exactly one of result and reference is NaN.
    """

    function: str
    dtype: str
    mode: str
    median: float
    most: float
    where: tuple[Any, ...]
    lost: int


def names() -> list[str]:
    """Return the names of the functions that can be measured."""
    for module in special._MODULES:
        importlib.import_module(f"corejax_scipy.{module}")  # registers its rows
    return sorted(ROWS)


def measure(name: str, dtype: Any, mode: str, count: int = 20_000) -> Measured:
    """Measure the errors of one function.

    Args:
        name: one of `names()`.
        dtype: float32 or float64. In float64 the reference has the same precision, so errors include SciPy's.
        mode: "run" or "compiled".
        count: the number of points.
    """
    dtype = np.dtype(dtype)
    primitive, oracle = ROWS[name]
    xs = points(name, count, dtype)
    function = corejax.jit(primitive.bind) if mode == "compiled" else primitive.bind
    got = np.asarray(function(*[jnp.asarray(x) for x in xs]))
    wide = np.complex128 if np.iscomplexobj(xs[0]) else np.float64
    with np.errstate(all="ignore"):
        want = np.asarray(oracle(*[x.astype(wide) for x in xs]))
        # Compiled programs flush subnormal numbers to zero; results that overflow in the dtype have no error.
        tiny, huge = np.finfo(dtype).tiny, np.finfo(dtype).max
        sane = (np.abs(want) < huge) & np.isfinite(want)
        unit = np.finfo(dtype).eps * 2.0 ** np.floor(np.log2(np.maximum(np.abs(want), tiny)))
        errors = np.where(sane & (np.abs(want) >= tiny), np.abs(got.astype(wide) - want) / unit, 0.0)
    lost = int(np.sum(np.isnan(got) != np.isnan(want)))
    errors = np.where(np.isnan(errors), 0.0, errors)
    worst = int(np.argmax(errors))
    where = tuple(complex(x[worst]) if np.iscomplexobj(x) else float(x[worst]) for x in xs)
    return Measured(name, dtype.name, mode, float(np.median(errors)), float(errors[worst]), where, lost)
