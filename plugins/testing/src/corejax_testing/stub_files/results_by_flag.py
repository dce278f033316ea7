"""Overloads of functions whose result depends on a flag, for functions whose source has no overloads.

The source of NumPy's functions annotates few parameters, because they accept whatever is like an array, so that the
renderer chooses the types. This table adds what each flag changes. Other functions write `typing.overload` at their
definition, which the stubs import.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

GIVEN = object()
"""Marks an argument that an overload requires, of the usual type."""

# Parameter -> its value, a tuple of possible values, or `GIVEN`.
Case = Mapping[str, Any]
Cases = list[tuple[Case, str]]

_ARRAY = "_Array"
_ANY_NUMBER = "_b.tuple[_Array, ...]"
_LINALG = "corejax_linalg.numpy_linalg.decompositions"


def _arrays(count: int) -> str:
    return f"_b.tuple[{', '.join([_ARRAY] * count)}]"


def _flag(name: str, if_false: str, if_true: str, default: bool = False) -> Cases:
    """Return the cases of a boolean flag, the default first."""
    cases: Cases = [({name: False}, if_false), ({name: True}, if_true)]
    return cases[::-1] if default else cases


def _flags(*names: str) -> Cases:
    """Return the cases of flags that each add an array to the result."""
    return [
        (dict(zip(names, values, strict=True)), _arrays(1 + sum(values)) if any(values) else _ARRAY)
        for values in product((False, True), repeat=len(names))
    ]


CASES: Mapping[str, Cases] = {
    "numpy.average": _flags("returned"),
    "numpy.linspace": _flags("retstep"),
    "numpy.unique": _flags("return_index", "return_inverse", "return_counts"),
    "numpy.intersect1d": _flag("return_indices", _ARRAY, _arrays(3)),
    "numpy.where": [({"x": GIVEN, "y": GIVEN}, _ARRAY), ({"x": None, "y": None}, _ANY_NUMBER)],
    "numpy.polyfit": [
        ({"full": False, "cov": False}, _ARRAY),
        ({"full": True, "cov": False}, _arrays(5)),
        ({"full": False, "cov": (True, "unscaled")}, _arrays(2)),
    ],
    "numpy.linalg.qr": [
        ({"mode": ("reduced", "full", "complete", "raw")}, f"{_LINALG}.QRResult"),
        ({"mode": "r"}, _ARRAY),
    ],
    "numpy.linalg.svd": _flag("compute_uv", _ARRAY, f"{_LINALG}.SVDResult", default=True),
    "lax.linalg.qr": _flag("pivoting", _arrays(2), _arrays(3)),
    "lax.linalg.schur": _flag("compute_schur_vectors", _arrays(1), _arrays(2), default=True),
    "lax.linalg.svd": _flag("compute_uv", _ARRAY, _arrays(3), default=True),
    "scipy.linalg.eigh": _flag("eigvals_only", _arrays(2), _ARRAY),
    "scipy.linalg.eigh_tridiagonal": _flag("eigvals_only", _arrays(2), _ARRAY),
    "scipy.linalg.expm_frechet": _flag("compute_expm", _ARRAY, _arrays(2), default=True),
    "scipy.linalg.funm": _flag("disp", _arrays(2), _ARRAY, default=True),
    "scipy.linalg.hessenberg": _flags("calc_q"),
    "scipy.linalg.lu": _flag("permute_l", _arrays(3), _arrays(2)),
    "scipy.linalg.qr": [
        ({"mode": ("full", "economic"), "pivoting": False}, _arrays(2)),
        ({"mode": ("full", "economic"), "pivoting": True}, _arrays(3)),
        ({"mode": "r", "pivoting": False}, _arrays(1)),
        ({"mode": "r", "pivoting": True}, _arrays(2)),
    ],
    "scipy.linalg.qr_multiply": _flag("pivoting", _arrays(2), _arrays(3)),
    "scipy.linalg.svd": _flag("compute_uv", _ARRAY, _arrays(3), default=True),
    "scipy.special.logsumexp": _flags("return_sign"),
    "nn.logsumexp": _flags("return_sign"),
    "nn.dot_product_attention": _flags("return_residual"),
}
