"""`jax.interpreters.mlir`."""

from corejax_as_jax.absent import absent_function as _absent_function
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
emit_python_callback = _absent_function("emit_python_callback")
