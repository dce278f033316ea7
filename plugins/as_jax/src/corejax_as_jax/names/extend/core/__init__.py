"""`jax.extend.core`."""

import numpy as _np

from corejax import Array as _Array
from corejax.extend import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var, jaxpr_as_fun, set_current_trace
from corejax.extend.messages import InconclusiveDimensionOperation
from corejax.extend.programs import Literal, check_jaxpr
from corejax_as_jax.core import (
    DropVar,
    Effect,
    TraceTag,
    concrete_or_error,
    find_top_trace,
    gensym,
    get_opaque_trace_state,
    jaxprs_in_params,
    mapped_aval,
    new_jaxpr_eqn,
    no_effects,
    primal_dtype_to_tangent_dtype,
    subjaxprs,
    take_current_trace,
    unmapped_aval,
    unsafe_am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_get_axis_names as unsafe_get_axis_names_DO_NOT_USE,
    valid_jaxtype,
)
from corejax_as_jax.primitives import Primitive

Effects = frozenset
JaxprTypeError = TypeError
array_types = {_Array, _np.ndarray, _np.generic}
