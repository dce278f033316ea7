"""`corejax.lax`: the array primitives as functions, and what other plugins export under `lax.` (`scan`, `cond`).

A module's `__all__`, or a row of a table, is what brings a name here.
"""

from __future__ import annotations

from typing import Any as _Any

from corejax.extend import exported as _exported
from corejax.extend import exported_names as _exported_names
from corejax.extend import missing_name as _missing_name
from corejax_lax_basic._base.accuracy import *
from corejax_lax_basic._base.constants import *
from corejax_lax_basic._base.rows import ROWS as _ROWS
from corejax_lax_basic._base.scalars import *
from corejax_lax_basic._promotion import *
from corejax_lax_basic.conversion.bitcast import *
from corejax_lax_basic.conversion.convert import *
from corejax_lax_basic.conversion.precision import *
from corejax_lax_basic.convolution.conv import *
from corejax_lax_basic.convolution.dimension_numbers import *
from corejax_lax_basic.convolution.forms import *
from corejax_lax_basic.convolution.shapes import *
from corejax_lax_basic.creation.empty import *
from corejax_lax_basic.creation.filled import *
from corejax_lax_basic.creation.iota import *
from corejax_lax_basic.elementwise.arithmetic import *
from corejax_lax_basic.elementwise.bits import *
from corejax_lax_basic.elementwise.comparison import *
from corejax_lax_basic.elementwise.complex_numbers import *
from corejax_lax_basic.elementwise.logical import *
from corejax_lax_basic.elementwise.powers import *
from corejax_lax_basic.elementwise.rounding import *
from corejax_lax_basic.elementwise.select import *
from corejax_lax_basic.elementwise.trigonometry import *
from corejax_lax_basic.elementwise.unary import *
from corejax_lax_basic.indexing.dimension_numbers import *
from corejax_lax_basic.indexing.dynamic_slicing import *
from corejax_lax_basic.indexing.gather import *
from corejax_lax_basic.indexing.scatter import *
from corejax_lax_basic.indexing.scatter_apply import *
from corejax_lax_basic.indexing.scatter_combining import *
from corejax_lax_basic.linear.dot import *
from corejax_lax_basic.linear.precision import *
from corejax_lax_basic.linear.ragged_dot import *
from corejax_lax_basic.linear.scaled_dot import *
from corejax_lax_basic.reductions.associative_scan import *
from corejax_lax_basic.reductions.cumulative import *
from corejax_lax_basic.reductions.general import *
from corejax_lax_basic.reductions.reduce import *
from corejax_lax_basic.shape.broadcasting import *
from corejax_lax_basic.shape.joining import *
from corejax_lax_basic.shape.likeness import *
from corejax_lax_basic.shape.rearranging import *
from corejax_lax_basic.shape.slicing import *
from corejax_lax_basic.shape.splitting import *
from corejax_lax_basic.shape.tiling import *
from corejax_lax_basic.sorting.sort import *
from corejax_lax_basic.sorting.top_k import *
from corejax_lax_basic.sorting.total_order import *
from corejax_lax_basic.special.bessel import *
from corejax_lax_basic.special.error_functions import *
from corejax_lax_basic.special.gamma import *
from corejax_lax_basic.special.incomplete import *
from corejax_lax_basic.windows.general import *
from corejax_lax_basic.windows.geometry import *
from corejax_lax_basic.windows.reduce_window import *
from corejax_lax_basic.windows.select_and_scatter import *
from corejax_lax_basic.windows.selection import *

# What rows of tables define: `sin`, `sin_p`, ...
for _name, _value in _ROWS.items():
    globals().setdefault(_name, _value)

# What functions of other plugins do as those here: they find it by name, users are not shown it.
_SHARED = """
    annotations as_operand asarray broadcast_operands broadcast_to check_rank_promotion convert_operand
    is_python_scalar make_scalar promote_dtypes promote_operands yielding_scalar zeros_like_array
"""
__all__ = sorted(n for n in globals() if not n.startswith("_") and n not in _SHARED.split())


def __getattr__(name: str) -> _Any:
    if name.startswith("_"):  # never exported by a plugin
        raise AttributeError(f"module 'corejax.lax' has no attribute {name!r}")
    found = _exported("lax." + name)
    if found is None:
        raise _missing_name("lax." + name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_exported_names("lax"), *(n for n in globals() if n.startswith("__"))})
