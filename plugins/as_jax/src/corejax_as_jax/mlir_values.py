"""Functions of `jax.interpreters.mlir` for rules that write MLIR: types, constants and attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, get_aval, host_value
from corejax_xla_backend import hlo


def flatten_ir_values(values: Any) -> list[Any]:
    """Return the values in nested sequences, or the results of an operation, as a list."""
    if isinstance(values, hlo.ir.Value):
        return [values]
    if isinstance(values, hlo.ir.OpView | hlo.ir.Operation):
        return list(values.results)
    return [value for item in values for value in flatten_ir_values(item)]


def dtype_to_ir_type(dtype: Any) -> Any:
    """Return the element type of a dtype."""
    return hlo.element_type(dtype)


def aval_to_ir_type(aval: ShapedArray) -> Any:
    """Return the tensor type of an array's type."""
    return hlo.ir.RankedTensorType.get(aval.shape, dtype_to_ir_type(aval.dtype))


def aval_to_ir_types(aval: ShapedArray) -> tuple[Any, ...]:
    """Return the tensor type of an array's type in a tuple."""
    return (aval_to_ir_type(aval),)


def ir_constant(value: Any, **options: Any) -> Any:
    """Return a constant."""
    from jaxlib.mlir.dialects import stablehlo

    array = np.asarray(host_value(value), get_aval(value).dtype)
    return stablehlo.constant(hlo.dense_attribute(array))


def ir_constants(value: Any, **options: Any) -> list[Any]:
    """Return a constant in a list."""
    return [ir_constant(value)]


def i32_attr(i: int) -> Any:
    """Return an attribute of a 32-bit integer."""
    return hlo.ir.IntegerAttr.get(hlo.ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """Return an attribute of a 64-bit integer."""
    return hlo.ir.IntegerAttr.get(hlo.ir.IntegerType.get_signless(64), i)


def dense_int_array(values: Iterable[int]) -> Any:
    """Return an attribute of several 64-bit integers."""
    return hlo.ir.DenseI64ArrayAttr.get(list(values))


def dense_int_elements(values: Iterable[int]) -> Any:
    """Return a dense attribute of several 64-bit integers."""
    return hlo.ir.DenseIntElementsAttr.get(np.asarray(list(values), np.int64))  # type: ignore[call-overload]  # a buffer


def shape_tensor(sizes: Sequence[int]) -> Any:
    """Return a one-dimensional constant of 32-bit integers."""
    return ir_constant(np.asarray(sizes, np.int32))
