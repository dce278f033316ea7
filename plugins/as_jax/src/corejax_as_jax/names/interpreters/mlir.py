"""`jax.interpreters.mlir`."""

from importlib import import_module as _import_module
from typing import Any as _Any

from corejax_as_jax.lowering import (
    LowerFun as lower_fun,
)
from corejax_as_jax.lowering import (
    LoweringRuleContext,
    ModuleContext,
    emit_python_callback,
    register_lowering,
)

LoweringRule = object

_VALUES = {
    "aval_to_ir_type", "aval_to_ir_types", "dense_int_array", "dense_int_elements", "dtype_to_ir_type",
    "flatten_ir_values", "i32_attr", "i64_attr", "ir_constant", "ir_constants", "shape_tensor",
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    """Return a function that needs MLIR's bindings, the bindings (`ir`), or their class of values."""
    if name in _VALUES:
        return getattr(_import_module("corejax_as_jax.mlir_values"), name)
    if name in ("ir", "Value"):
        ir = _import_module("corejax_xla_backend.hlo").ir
        return ir if name == "ir" else ir.Value
    raise AttributeError(name)
