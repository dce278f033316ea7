"""Errors of special functions in units in the last place, run and compiled, beside SciPy's float64."""

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
    """Of one function in one dtype and one mode.

    Attributes:
        function, dtype, mode: what; the mode is "run" or "compiled".
        median, most: errors in ulp, of half of the points and of the worst one.
        where: the worst point.
        lost: at how many points only one of the two is NaN.
    """

    function: str
    dtype: str
    mode: str
    median: float
    most: float
    where: tuple[Any, ...]
    lost: int


def names() -> list[str]:
    """The functions that can be measured."""
    for module in special._MODULES:
        importlib.import_module(f"corejax_scipy.{module}")  # its rows enter themselves
    return sorted(ROWS)


def measure(name: str, dtype: Any, mode: str, count: int = 20_000) -> Measured:
    """The errors of one function.

    Args:
        name: one of `names()`.
        dtype: float32 or float64. In float64 SciPy's own value is what it is compared with, so that an error is that of
            both together.
        mode: "run" or "compiled".
        count: of points.
    """
    dtype = np.dtype(dtype)
    primitive, oracle = ROWS[name]
    xs = points(name, count, dtype)
    function = corejax.jit(primitive.bind) if mode == "compiled" else primitive.bind
    got = np.asarray(function(*[jnp.asarray(x) for x in xs]))
    wide = np.complex128 if np.iscomplexobj(xs[0]) else np.float64
    with np.errstate(all="ignore"):
        want = np.asarray(oracle(*[x.astype(wide) for x in xs]))
        # What is subnormal counts as zero in compiled programs, what is infinite in the dtype has no error.
        tiny, huge = np.finfo(dtype).tiny, np.finfo(dtype).max
        sane = (np.abs(want) < huge) & np.isfinite(want)
        unit = np.finfo(dtype).eps * 2.0 ** np.floor(np.log2(np.maximum(np.abs(want), tiny)))
        errors = np.where(sane & (np.abs(want) >= tiny), np.abs(got.astype(wide) - want) / unit, 0.0)
    lost = int(np.sum(np.isnan(got) != np.isnan(want)))
    errors = np.where(np.isnan(errors), 0.0, errors)
    worst = int(np.argmax(errors))
    where = tuple(complex(x[worst]) if np.iscomplexobj(x) else float(x[worst]) for x in xs)
    return Measured(name, dtype.name, mode, float(np.median(errors)), float(errors[worst]), where, lost)
