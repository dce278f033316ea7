"""Impl rules by LAPACK, one matrix of a stack after the other, and what becomes of matrices that it fails on.

The routines are SciPy's, which are also what compiled programs call: both give the same signs and pivots. SciPy takes
long to import, so that is done when a matrix is first computed with. Large stacks of small matrices are compiled, for
most of the time is spent on calling the routine from Python.
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
    """A matrix for which there is no result; the text says why. It does not leave this package.

    Attributes:
        instead: what takes the place of the result, NaN by default.
    """

    def __init__(self, reason: str, instead: Any = np.nan) -> None:
        super().__init__(reason)
        self.instead = instead


@functools.cache
def routine(name: str, dtype: Any, library: str = "lapack") -> Callable[..., Any]:
    """A routine of LAPACK's or BLAS's (`library`) for a dtype, by `lapack_name`."""
    return getattr(importlib.import_module(f"scipy.linalg.{library}"), lapack_name(name, dtype))  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=1024)
def workspace(name: str, dtype: Any, *sizes: Any) -> int:
    """How much room the routine of this name works best with, by its `_lwork` companion."""
    real, _, other = name.partition("/")
    query = routine(f"{real}_lwork/{other}_lwork" if other else f"{real}_lwork", dtype)
    return int(np.real(query(*sizes)[0]))


def check(info: int, reason: Callable[[int], str]) -> None:
    """Fail where a routine says so.

    Raises:
        FailureError: `info` is not zero; `reason(info)` is its text.
    """
    if info:
        raise FailureError(reason(info))


def require_finite(a: Any) -> None:
    """Fail of a matrix that LAPACK's iterations would not come to an end with, or complain about on the terminal.

    Raises:
        FailureError: it has elements that are infinite or NaN.
    """
    if not np.isfinite(a).all():
        raise FailureError("it has elements that are not finite")


def no_convergence(info: int) -> str:
    """Why an iteration over eigenvalues or singular values fails."""
    return "the iteration does not converge"


def stacked(
    name: str, ranks: Sequence[int], types: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make an impl rule of a function of single matrices.

    Args:
        name: the primitive, for messages.
        ranks: of each operand, how many axes are not batch axes.
        types: the primitive's abstract-eval rule.

    Returns:
        A decorator of `f(*matrices, **params) -> result or results`, which is not called for matrices without
        elements: their results are zero. Where it raises `FailureError`, the results are NaN, or, with
        `config.linalg_errors`, an error says which matrix it was.
    """

    def decorate(one: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(one)
        def impl(*arrays: Any, **params: Any) -> Any:
            if arrays[0].ndim == ranks[0] and all(x.size for x in arrays):
                try:
                    return one(*arrays, **params)
                except FailureError as failure:
                    _tell(name, (), failure)
            avals = types(*(ShapedArray(x.shape, x.dtype) for x in arrays), **params)
            several = isinstance(avals, list | tuple)
            found = _compiled(name, arrays, ranks, params)
            if found is not None:
                return found[: len(avals)] if several else found[0]
            outs = _one_by_one(name, one, arrays, ranks, avals if several else [avals], params)
            return outs if several else outs[0]

        return impl

    return decorate


_MANY, _SMALL = 64, 32 * 32  # matrices, and their elements
# Those for which routines are told otherwise, eagerly, where matrices stand in memory: the last bits are others.
_OTHER_BITS = frozenset({"cholesky", "triangular_solve"})


def _compiled(name: str, arrays: Any, ranks: Any, params: Any) -> Any:
    """Results for many small matrices, as `Array`s; None of others, and at a first call if results are the same."""
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
    count = math.prod(batch)  # -1 says nothing of a result without elements
    stacks = [x.reshape(count, *x.shape[x.ndim - r :]) for x, r in zip(arrays, ranks, strict=True)]
    flat = [out.reshape(count, *out.shape[len(batch) :]) for out in outs]
    for i, matrices in enumerate(zip(*stacks, strict=True)):
        try:
            results = one(*matrices, **params)
        except FailureError as failure:
            _tell(name, tuple(int(k) for k in np.unravel_index(i, batch)), failure)
            results = [failure.instead for _ in flat]
        for out, result in zip(flat, results if isinstance(results, list | tuple) else [results], strict=True):
            out[i] = result
    return outs


def _tell(name: str, index: tuple[int, ...], failure: FailureError) -> None:
    """Raise an error of a matrix that failed, if the setting asks for it."""
    if config.linalg_errors:
        which = f"matrix {index} of the stack" if index else "the matrix"
        raise np.linalg.LinAlgError(f"{name}: {which}: {failure}") from None
