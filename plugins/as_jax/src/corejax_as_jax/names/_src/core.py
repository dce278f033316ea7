"""`jax._src.core`."""

from corejax import ShapedArray, Tracer, ensure_compile_time_eval
from corejax.extend import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var, get_aval, jaxpr_as_fun, set_current_trace
from corejax.extend import current_trace as _current_trace
from corejax.extend.messages import InconclusiveDimensionOperation
from corejax.extend.programs import Literal, check_jaxpr
from corejax_as_jax.core import (
    AbstractValue,
    Atom,
    DropVar,
    Effect,
    Trace,
    TraceTag,
    concrete_or_error,
    eval_context,
    eval_jaxpr,
    find_top_trace,
    full_lower,
    gensym,
    get_opaque_trace_state,
    jaxprs_in_params,
    mapped_aval,
    new_jaxpr_eqn,
    no_effects,
    primal_dtype_to_tangent_dtype,
    raise_to_shaped,
    subjaxprs,
    take_current_trace,
    trace_state_clean,
    unmapped_aval,
    unsafe_am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_get_axis_names as unsafe_get_axis_names_DO_NOT_USE,
    valid_jaxtype,
)
from corejax_as_jax.primitives import Primitive

Effects = frozenset


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of the numbers that store an array; keys are arrays of words."""
    return aval.parts()[0]
