"""Comparisons: eq ne lt le gt ge.

    eq : (a[*s], a[*s]) -> bool[*s]

Operands have one dtype and shape, or are scalars beside arrays. A NaN is unequal to everything and unordered; complex
numbers have equality only. Derivatives are zero. Each function raises TypeError if dtypes or shapes disagree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, defzero
from corejax.extend.types import physical_rules
from corejax_lax_basic._base.prepared import is_ufunc
from corejax_lax_basic._base.type_rules import ANY, ORDERED, to_bool
from corejax_lax_basic.elementwise._family import RowOptions, binary
from corejax_lax_basic.elementwise.logical import and_p, or_p
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim
from corejax_lax_basic.shape.rearranging import reshape
from corejax_lax_basic.shape.slicing import slice_in_dim

__all__: list[str] = []  # rows bring their own names

_any = "Return `{} y` for each element, as bool; any dtype (StableHLO `compare` {})."
_ordered = "Return `{} y` for each element, as bool; boolean, integer or floating-point (StableHLO `compare` {})."


@is_ufunc(np.equal, "biufc")
def equal_elements(x: Any, y: Any) -> Any:
    """Compare by `numpy.equal`; also compares keys."""
    return np.equal(x, y) if x.dtype.names is None else np.asarray(x == y)


@is_ufunc(np.not_equal, "biufc")
def unequal_elements(x: Any, y: Any) -> Any:
    """Compare by `numpy.not_equal`; also compares keys."""
    return np.not_equal(x, y) if x.dtype.names is None else np.asarray(x != y)


_more: RowOptions = {"result": to_bool, "exact": True}

# One rule translates all of them; the name is the direction of StableHLO's `compare`.
# fmt: off
eq, eq_p = binary("eq", equal_elements,   ANY,     None, defzero, _any.format("x ==", "EQ"),     **_more)
ne, ne_p = binary("ne", unequal_elements, ANY,     None, defzero, _any.format("x !=", "NE"),     **_more)
lt, lt_p = binary("lt", np.less,          ORDERED, None, defzero, _ordered.format("x <", "LT"),  **_more)
le, le_p = binary("le", np.less_equal,    ORDERED, None, defzero, _ordered.format("x <=", "LE"), **_more)
gt, gt_p = binary("gt", np.greater,       ORDERED, None, defzero, _ordered.format("x >", "GT"),  **_more)
ge, ge_p = binary("ge", np.greater_equal, ORDERED, None, defzero, _ordered.format("x >=", "GE"), **_more)
# fmt: on


def _register_physical(comparison: Primitive, joined: Primitive) -> None:
    """Register the comparison of extended dtypes: two keys, say, are equal if all of their numbers are equal."""

    @physical_rules.register(comparison)
    def rule(avals: tuple[ShapedArray, ...], *operands: Any) -> Any:
        shape = max((aval.shape for aval in avals), key=len)
        inner = avals[0].parts()[0].shape[avals[0].ndim :]
        axes = [(*range(aval.ndim), *range(len(shape), len(shape) + len(inner))) for aval in avals]
        x, y = (broadcast_in_dim(v, (*shape, *inner), d) for v, d in zip(operands, axes, strict=True))
        numbers = reshape(comparison.bind(x, y), (*shape, -1))
        parts = [reshape(slice_in_dim(numbers, i, i + 1, axis=-1), shape) for i in range(numbers.shape[-1])]
        out = parts[0]
        for part in parts[1:]:
            out = joined.bind(out, part)
        return out


_register_physical(eq_p, and_p)
_register_physical(ne_p, or_p)
