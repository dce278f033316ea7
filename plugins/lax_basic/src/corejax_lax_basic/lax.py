"""`corejax.lax`: the array primitives as functions, and what other plugins export under `lax.` (`scan`, `cond`)."""

from __future__ import annotations

from typing import Any

from corejax.extend import exported, missing_name
from corejax_lax_basic._base.constants import asarray as asarray
from corejax_lax_basic._base.rows import ROWS as _ROWS
from corejax_lax_basic._base.scalars import is_python_scalar as is_python_scalar
from corejax_lax_basic._base.scalars import make_scalar as make_scalar
from corejax_lax_basic._promotion import as_operand as as_operand
from corejax_lax_basic._promotion import broadcast_operands as broadcast_operands
from corejax_lax_basic._promotion import convert_operand as convert_operand
from corejax_lax_basic._promotion import promote_dtypes as promote_dtypes
from corejax_lax_basic._promotion import promote_operands as promote_operands
from corejax_lax_basic.conversion.convert import convert_element_type as convert_element_type
from corejax_lax_basic.conversion.convert import convert_element_type_p as convert_element_type_p
from corejax_lax_basic.conversion.convert import stop_gradient as stop_gradient
from corejax_lax_basic.conversion.convert import stop_gradient_p as stop_gradient_p
from corejax_lax_basic.creation.filled import full as full
from corejax_lax_basic.creation.filled import full_like as full_like
from corejax_lax_basic.creation.filled import zeros_like_array as zeros_like_array
from corejax_lax_basic.creation.iota import broadcasted_iota as broadcasted_iota
from corejax_lax_basic.creation.iota import iota as iota
from corejax_lax_basic.creation.iota import iota_p as iota_p
from corejax_lax_basic.elementwise import arithmetic as _arithmetic  # noqa: F401
from corejax_lax_basic.elementwise import comparison as _comparison  # noqa: F401
from corejax_lax_basic.elementwise import complex_numbers as _complex_numbers  # noqa: F401
from corejax_lax_basic.elementwise import logical as _logical  # noqa: F401
from corejax_lax_basic.elementwise import unary as _unary  # noqa: F401
from corejax_lax_basic.elementwise.complex_numbers import conj as conj
from corejax_lax_basic.elementwise.powers import integer_pow as integer_pow
from corejax_lax_basic.elementwise.powers import integer_pow_p as integer_pow_p
from corejax_lax_basic.elementwise.powers import pow as pow
from corejax_lax_basic.elementwise.powers import pow_p as pow_p
from corejax_lax_basic.elementwise.powers import square as square
from corejax_lax_basic.elementwise.select import clamp as clamp
from corejax_lax_basic.elementwise.select import clamp_p as clamp_p
from corejax_lax_basic.elementwise.select import select as select
from corejax_lax_basic.elementwise.select import select_n as select_n
from corejax_lax_basic.elementwise.select import select_n_p as select_n_p
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_index_in_dim as dynamic_index_in_dim
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice as dynamic_slice
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_update_slice_p as dynamic_update_slice_p
from corejax_lax_basic.linear.dot import batch_matmul as batch_matmul
from corejax_lax_basic.linear.dot import dot as dot
from corejax_lax_basic.linear.dot import dot_general as dot_general
from corejax_lax_basic.linear.dot import dot_general_p as dot_general_p
from corejax_lax_basic.reductions import cumulative as _cumulative  # noqa: F401
from corejax_lax_basic.reductions import reduce as _reduce  # noqa: F401
from corejax_lax_basic.reductions.associative_scan import associative_scan as associative_scan
from corejax_lax_basic.shape.broadcasting import broadcast as broadcast
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim as broadcast_in_dim
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p as broadcast_in_dim_p
from corejax_lax_basic.shape.broadcasting import broadcast_shapes as broadcast_shapes
from corejax_lax_basic.shape.broadcasting import broadcast_to as broadcast_to
from corejax_lax_basic.shape.broadcasting import expand_dims as expand_dims
from corejax_lax_basic.shape.joining import concatenate as concatenate
from corejax_lax_basic.shape.joining import concatenate_p as concatenate_p
from corejax_lax_basic.shape.rearranging import collapse as collapse
from corejax_lax_basic.shape.rearranging import reshape as reshape
from corejax_lax_basic.shape.rearranging import reshape_p as reshape_p
from corejax_lax_basic.shape.rearranging import rev as rev
from corejax_lax_basic.shape.rearranging import rev_p as rev_p
from corejax_lax_basic.shape.rearranging import squeeze as squeeze
from corejax_lax_basic.shape.rearranging import squeeze_p as squeeze_p
from corejax_lax_basic.shape.rearranging import transpose as transpose
from corejax_lax_basic.shape.rearranging import transpose_p as transpose_p
from corejax_lax_basic.shape.slicing import index_in_dim as index_in_dim
from corejax_lax_basic.shape.slicing import pad as pad
from corejax_lax_basic.shape.slicing import pad_p as pad_p
from corejax_lax_basic.shape.slicing import slice as slice
from corejax_lax_basic.shape.slicing import slice_in_dim as slice_in_dim
from corejax_lax_basic.shape.slicing import slice_p as slice_p

# What rows of tables define: `sin`, `sin_p`, ... The other functions are listed above.
for _name, _value in _ROWS.items():
    globals().setdefault(_name, _value)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # never exported by a plugin
        raise AttributeError(f"module 'corejax.lax' has no attribute {name!r}")
    found = exported("lax." + name)
    if found is None:
        raise missing_name("lax." + name)
    globals()[name] = found
    return found
