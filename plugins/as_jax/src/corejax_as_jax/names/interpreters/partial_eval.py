"""`jax.interpreters.partial_eval`."""

from corejax.extend.programs import dce_rules
from corejax.extend.speed import PartialEvalTracer as JaxprTracer
from corejax.extend.transforms import JitTracer as DynamicJaxprTracer
from corejax_as_jax.partial_eval import (
    PartialVal,
    close_jaxpr,
    convert_constvars_jaxpr,
    dce_jaxpr,
    dce_jaxpr_consts,
    trace_to_jaxpr_dynamic,
    trace_to_jaxpr_nounits,
)
