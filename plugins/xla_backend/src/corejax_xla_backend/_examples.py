"""Applications of `xla_call`, for whoever checks its rules (`corejax verify xla_backend`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, stage_closed
from corejax_xla_backend._jit.functions import jit


def examples_of(primitive: str) -> list[Example]:
    """Applications of one primitive; none for a name that is not of this plugin."""
    makers = {"xla_call": _calls, "ffi_call": _kernels, "effectful_ffi_call": _kernels}
    return makers[primitive]() if primitive in makers else []


def _calls() -> list[Example]:
    x = ShapedArray((3,), np.dtype(np.float32))

    def product(a: Any, b: Any) -> list[Any]:
        return list(jit(lambda a, b: (a * b * b, b))(a, b))

    def nested(a: Any, b: Any) -> list[Any]:
        return [jit(lambda a, b: jit(lambda c: c * c)(a) + b)(a, b)]

    equations = [stage_closed(fun, [x, x]).jaxpr.eqns[-1] for fun in (product, nested)]
    return [Example(tuple(atom.aval for atom in eqn.invars), eqn.params) for eqn in equations]


def _kernels() -> list[Example]:
    """A kernel that is always there: the Cholesky factorisation of the LAPACK that jaxlib ships."""
    from corejax_xla_backend import _jaxlib

    _jaxlib.register_lapack()
    matrix = np.array([[4, 1, 0.5], [1, 3, 0], [0.5, 0, 2]], np.float32)
    types = (ShapedArray((3, 3), np.dtype(np.float32)), ShapedArray((), np.dtype(np.int32)))
    params = {
        "target": "lapack_spotrf_ffi",
        "in_types": types[:1],
        "out_types": types,
        "attributes": (("uplo", np.uint8(ord("L"))),),
        "vmap_method": "sequential",
    }
    return [Example((matrix,), params)]
