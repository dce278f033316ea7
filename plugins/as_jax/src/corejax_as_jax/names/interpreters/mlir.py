"""`jax.interpreters.mlir`."""

from typing import Any as _Any

from corejax_xla_backend import hlo as _hlo
from corejax_as_jax.lowering import (
    LowerFun as lower_fun,
)
from corejax_as_jax.lowering import (
    LoweringRuleContext,
    ModuleContext,
    aval_to_ir_type,
    aval_to_ir_types,
    dense_int_array,
    dense_int_elements,
    dtype_to_ir_type,
    emit_python_callback,
    flatten_ir_values,
    i32_attr,
    i64_attr,
    ir_constant,
    ir_constants,
    register_lowering,
    shape_tensor,
)

LoweringRule = object


def __getattr__(name: str) -> _Any:
    """Return MLIR's bindings, which are imported when a program is compiled, or their class of values."""
    if name in ("ir", "Value"):
        return _hlo.ir if name == "ir" else _hlo.ir.Value
    raise AttributeError(name)
