"""Impl rules that call LAPACK for each matrix of a stack, and handle its failures.

The routines come from SciPy. Compiled programs call the same routines, so both give the same signs and pivots. SciPy is
slow to import, so it is imported at the first computation. Large stacks of small matrices are compiled instead, since
calling a routine from Python would take most of the time.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ShapedArray, config, primitives
from corejax.extend.speed import engine
from corejax_linalg._base.types import lapack_name


class FailureError(Exception):
    """A matrix has no result; the message says why. The error does not leave this package.

    Attributes:
        instead: the value that replaces the result, NaN by default.
    """

    def __init__(self, reason: str, instead: Any = np.nan) -> None:
        super().__init__(reason)
        self.instead = instead


@functools.cache
def routine(name: str, dtype: Any, library: str = "lapack") -> Callable[..., Any]:
    """Return a routine of LAPACK or BLAS (`library`) for a dtype; `name` is as for `lapack_name`."""
    function: Callable[..., Any] = getattr(importlib.import_module(f"scipy.linalg.{library}"), lapack_name(name, dtype))
    return function


@functools.lru_cache(maxsize=1024)
def workspace(name: str, dtype: Any, *sizes: Any) -> int:
    """Return the optimal size of a routine's workspace, by a query of its `_lwork` companion."""
    real, _, other = name.partition("/")
    query = routine(f"{real}_lwork/{other}_lwork" if other else f"{real}_lwork", dtype)
    return int(np.real(query(*sizes)[0]))


def check(info: int, reason: Callable[[int], str]) -> None:
    """Raise FailureError if a routine reports a failure.

    Raises:
        FailureError: `info` is not zero; `reason(info)` is the message.
    """
    if info:
        raise FailureError(reason(info))


def require_finite(a: Any) -> None:
    """Raise FailureError for a matrix on which LAPACK's iterations would not end, or would print to the terminal.

    Raises:
        FailureError: the matrix has infinite or NaN elements.
    """
    if not np.isfinite(a).all():
        raise FailureError("it has elements that are not finite")


def no_convergence(info: int) -> str:
    """Return the message for an iteration over eigenvalues or singular values that fails."""
    return "the iteration does not converge"


def stacked(
    name: str, ranks: Sequence[int], types: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that turns a function of single matrices into an impl rule for stacks.

    Args:
        name: the primitive's name, for messages.
        ranks: for each operand, the number of axes that are not batch axes.
        types: the primitive's abstract-eval rule.

    Returns:
        A decorator of `f(*matrices, **params) -> result or results`. The function is not called for matrices without
        elements, which have zero results. If the function raises `FailureError`, the results are NaN; with
        `config.linalg_errors`, an error names the matrix instead.
    """

    def decorate(one: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(one)
        def impl(*arrays: Any, **params: Any) -> Any:
            if arrays[0].ndim == ranks[0] and all(x.size for x in arrays):
                try:
                    return one(*arrays, **params)
                except FailureError as failure:
                    _raise_if_asked(name, (), failure)
            avals = types(*(ShapedArray(x.shape, x.dtype) for x in arrays), **params)
            several = isinstance(avals, list | tuple)
            found = _compiled(name, arrays, ranks, params)
            if found is not None:
                return found[: len(avals)] if several else found[0]
            outs = _one_by_one(name, one, arrays, ranks, avals if several else [avals], params)
            return outs if several else outs[0]

        return impl

    return decorate


# Stacks of at least _MANY matrices with at most _SMALL elements each are compiled.
_MANY, _SMALL = 64, 32 * 32
# Eagerly, these primitives pass transposed matrices to LAPACK, so their last bits differ from compiled results. They
# are compiled from the first call on, so that a call and its repetition give the same bits.
_OTHER_BITS = frozenset({"cholesky", "triangular_solve"})


def _compiled(name: str, arrays: Any, ranks: Any, params: Any) -> Any:
    """Return compiled results for many small matrices as `Array`s; None for other stacks, or at a first call."""
    x, rank = arrays[0], ranks[0]
    matrices, elements = (math.prod(sizes) for sizes in (x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]))
    if matrices < _MANY or not 0 < elements <= _SMALL or config.linalg_errors or name not in primitives:
        return None
    primitive, operands = primitives[name], [Array(a) for a in arrays]
    if name not in _OTHER_BITS and not engine().comes_again(primitive, [a.aval for a in operands], params):
        return None
    outs = engine().run_compiled(primitive, operands, params)
    return outs if outs is None or primitive.multiple_results else [outs]


def _one_by_one(name: str, one: Any, arrays: Any, ranks: Any, avals: Any, params: Any) -> list[Any]:
    batch = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    outs = [np.zeros(a.shape, a.dtype) for a in avals]
    if not all(x.size for x in arrays):
        return outs
    count = math.prod(batch)  # reshape cannot infer -1 for results without elements
    stacks = [x.reshape(count, *x.shape[x.ndim - r :]) for x, r in zip(arrays, ranks, strict=True)]
    flat = [out.reshape(count, *out.shape[len(batch) :]) for out in outs]
    for i, matrices in enumerate(zip(*stacks, strict=True)):
        try:
            results = one(*matrices, **params)
        except FailureError as failure:
            _raise_if_asked(name, tuple(int(k) for k in np.unravel_index(i, batch)), failure)
            results = [failure.instead for _ in flat]
        for out, result in zip(flat, results if isinstance(results, list | tuple) else [results], strict=True):
            out[i] = result
    return outs


def _raise_if_asked(name: str, index: tuple[int, ...], failure: FailureError) -> None:
    """Raise LinAlgError for a matrix that failed, if `config.linalg_errors` is on."""
    if config.linalg_errors:
        which = f"matrix {index} of the stack" if index else "the matrix"
        raise np.linalg.LinAlgError(f"{name}: {which}: {failure}") from None
