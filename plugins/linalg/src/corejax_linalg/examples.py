"""Example applications of the primitives, from which checks of their rules start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray

F32, F64, C128 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex128)


def _typed(*shape: int, dtype: Any = F64) -> ShapedArray:
    return ShapedArray(shape, dtype)


def _spread(a: Any, *others: Any, **params: Any) -> tuple[Any, ...]:
    """Return matrices of full rank with distinct eigenvalues and singular values, by a large, distinct diagonal."""
    k = min(a.shape[-2:])
    diagonal = np.zeros(a.shape[-2:], a.dtype)
    diagonal[range(k), range(k)] = 4.0 + 2.5 * np.arange(k)
    inside = np.clip(a.real, -1, 1) + (1j * np.clip(a.imag, -1, 1) if a.dtype.kind == "c" else 0)
    off = inside * (np.eye(*a.shape[-2:]) == 0)
    return ((diagonal + off).astype(a.dtype), *others)


def _definite(a: Any, **params: Any) -> tuple[Any]:
    """Return symmetric positive definite matrices."""
    (a,) = _spread(a)
    return ((a + a.conj().swapaxes(-1, -2)).astype(a.dtype),)


def _is_spread(a: Any, *others: Any, **params: Any) -> bool:
    if a.shape[-1] == 0 or a.shape[-2] == 0 or not np.isfinite(a).all():
        return True
    return bool(np.linalg.svd(a, compute_uv=False).min() > 0.5)


_BY_PHASE = ("jvp", "second_order", "derivative_dtypes", "points")
_PHASES = "LAPACK chooses the phases of complex vectors; derivatives are those of phases that change least"
_SIGNS = "LAPACK chooses the signs of vectors, by rounding"


def _matrices(
    *shapes: tuple[int, ...], prepare: Any = _spread, phases: str = "", signs: str = "", **params: Any
) -> list[Example]:
    return [
        Example(
            (_typed(*shape, dtype=dtype),),
            params,
            low=-1.0,
            high=1.0,
            prepare=prepare,
            requires=_is_spread,
            skip={
                **(dict.fromkeys(_BY_PHASE, phases) if phases and dtype == C128 else {}),
                **({"derivative_dtypes": signs} if signs else {}),
            },
        )
        for shape in shapes
        for dtype in (F64, C128)
    ]


def _triangular() -> list[Example]:
    def of(left_side: bool, lower: bool, transpose: bool, conjugate: bool, unit: bool, dtype: Any) -> Example:
        params = {
            "left_side": left_side,
            "lower": lower,
            "transpose_a": transpose,
            "conjugate_a": conjugate,
            "unit_diagonal": unit,
        }
        b = _typed(3, 2, dtype=dtype) if left_side else _typed(2, 3, dtype=dtype)
        return Example((_typed(3, 3, dtype=dtype), b), params, low=-1.0, prepare=_spread, requires=_is_spread)

    return [
        of(True, True, False, False, False, F64),
        of(True, False, True, False, False, F64),
        of(False, True, True, True, False, C128),
        of(False, False, False, False, True, F64),
        of(True, True, False, True, True, C128),
    ]


def _tridiagonal_solve() -> list[Example]:
    def dominant(dl: Any, d: Any, du: Any, b: Any, **params: Any) -> tuple[Any, ...]:
        return dl, (d + np.where(d.real >= 0, 5, -5)).astype(d.dtype) if not is_dominant(dl, d, du, b) else d, du, b

    def is_dominant(dl: Any, d: Any, du: Any, b: Any, **params: Any) -> bool:
        return bool(np.all(abs(d) > abs(dl) + abs(du)))

    return [
        Example(
            (*[_typed(4, dtype=dtype)] * 3, _typed(4, 2, dtype=dtype)),
            {"perturb_singular": False},
            prepare=dominant,
            requires=is_dominant,
        )
        for dtype in (F64, C128)
    ]


def _reflectors() -> list[Example]:
    return [Example((_typed(4, 3, dtype=d), _typed(3, dtype=d)), low=0.25, high=0.5) for d in (F64, C128)]


def _products() -> list[Example]:
    return [
        Example(
            (_typed(4, 3, dtype=d), _typed(3, dtype=d), _typed(*((4, 2) if left else (2, 4)), dtype=d)),
            {"left": left, "transpose": transpose},
            low=0.25,
            high=0.5,
        )
        for d, left, transpose in ((F64, True, False), (C128, True, True), (F64, False, True))
    ]


def _eig(left: bool, right: bool, vectors: bool) -> list[Example]:
    return _matrices(
        (3, 3),
        signs=_SIGNS if vectors else "",
        compute_left_eigenvectors=left,
        compute_right_eigenvectors=right,
        enable_eigvec_derivs=vectors,
        implementation=None,
    )


_NAMED: dict[str, Callable[[], list[Example]]] = {
    "cholesky": lambda: [
        *_matrices((3, 3), prepare=_definite, symmetrize_input=True),
        *_matrices((2, 3, 3), prepare=_definite, symmetrize_input=False),
    ],
    "cholesky_update": lambda: [Example((_typed(3, 3), _typed(3)), prepare=_spread, requires=_is_spread)],
    "eig": lambda: [*_eig(False, False, False), *_eig(True, True, True), *_eig(False, True, True)],
    "eigh": lambda: [
        *_matrices((3, 3), phases=_PHASES, signs=_PHASES, lower=True, symmetrize_input=True, algorithm=None),
        *_matrices((2, 3, 3), phases=_PHASES, signs=_PHASES, lower=False, symmetrize_input=False, algorithm=None),
    ],
    "geqp3": lambda: _matrices((4, 3), (3, 4)),
    "geqrf": lambda: _matrices((4, 3), (3, 4)),
    "hessenberg": lambda: _matrices((4, 4)),
    "householder_product": _reflectors,
    "lu": lambda: _matrices((3, 3), (2, 4, 3), (3, 4)),
    "lu_pivots_to_permutation": lambda: [
        Example(
            (np.array([1, 2, 2], np.int32),),
            {"permutation_size": 4},
            requires=lambda pivots, permutation_size: bool(np.all((pivots >= 0) & (pivots < permutation_size))),
        )
    ],
    "ormqr": _products,
    "qr": lambda: [
        *_matrices((4, 3), (3, 4), pivoting=False, full_matrices=False),
        *_matrices((3, 3), (4, 3), pivoting=True, full_matrices=True),
    ],
    "schur": lambda: _matrices((3, 3), compute_schur_vectors=True),
    "svd": lambda: [
        *_matrices(
            (3, 3), (4, 3), (2, 3), phases=_PHASES, signs=_PHASES, full_matrices=False, compute_uv=True, algorithm=None
        ),
        *_matrices((3, 4), full_matrices=True, compute_uv=False, algorithm=None),
    ],
    "symmetric_product": lambda: [Example((_typed(3, 2), _typed(3, 3)), {"alpha": 2.0, "beta": -0.5})],
    "triangular_solve": _triangular,
    "tridiagonal": lambda: _matrices((4, 4), lower=True),
    "tridiagonal_solve": _tridiagonal_solve,
}


def examples_of(primitive: str) -> Sequence[Example]:
    """Return the examples of a primitive, or none if the primitive belongs to another plugin."""
    return _NAMED[primitive]() if primitive in _NAMED else []
