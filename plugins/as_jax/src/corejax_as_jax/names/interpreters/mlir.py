"""`jax.interpreters.mlir`."""

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
    ir,
    ir_constant,
    ir_constants,
    register_lowering,
    shape_tensor,
)

Value = ir.Value
LoweringRule = object
