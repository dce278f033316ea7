"""`jax.core`."""

from corejax import ShapedArray, Tracer, ensure_compile_time_eval
from corejax.extend import DebugInfo, current_trace, get_aval, set_current_trace
from corejax.extend.messages import InconclusiveDimensionOperation
from corejax.extend.programs import check_jaxpr
from corejax.extend.types import max_dim, min_dim
from corejax_as_jax.absent import OpenTable
from corejax_as_jax.core import (
    AbstractValue,
    Atom,
    DropVar,
    Effect,
    Trace,
    concrete_or_error,
    eval_context,
    eval_jaxpr,
    find_top_trace,
    gensym,
    get_opaque_trace_state,
    jaxprs_in_params,
    new_jaxpr_eqn,
    no_effects,
    primal_dtype_to_tangent_dtype,
    valid_jaxtype,
)

Effects = frozenset
ParamDict = dict
Value = object
pytype_aval_mappings = OpenTable()
