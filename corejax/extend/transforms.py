"""Transformations of functions: traces, tangents, batches, named axes, and flat functions."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from corejax.core.named_axes import DecidedBy as DecidedBy
from corejax.core.named_axes import axes_in_scope as axes_in_scope
from corejax.core.named_axes import axis_size_of as axis_size_of
from corejax.core.named_axes import decided_by as decided_by
from corejax.core.named_axes import named_axes as named_axes
from corejax.core.named_axes import unbound_axis as unbound_axis
from corejax.core.structural import structural as structural
from corejax.core.trace import in_context as in_context
from corejax.core.trace import on_context as on_context
from corejax.core.trace import recording_trace as recording_trace
from corejax.core.trace import replayed_source as replayed_source
from corejax.core.trace import replaying as replaying
from corejax.core.trace import scope as scope
from corejax.core.trace import trace_stack as trace_stack
from corejax.extend._when_used import when_used as _when_used
from corejax.interpreters.batching import BatchTrace as BatchTrace
from corejax.interpreters.batching import BatchTracer as BatchTracer
from corejax.interpreters.batching import batch_flat as batch_flat
from corejax.interpreters.batching import mapped_aval as mapped_aval
from corejax.interpreters.batching import unmapped_aval as unmapped_aval
from corejax.interpreters.batching_helpers import align_batch_axes as align_batch_axes
from corejax.interpreters.debug_info import named_as as named_as
from corejax.interpreters.differentiability import why_not_differentiable as why_not_differentiable
from corejax.interpreters.jvp import JVPTrace as JVPTrace
from corejax.interpreters.jvp import as_tangent as as_tangent
from corejax.interpreters.jvp import tangent_aval as tangent_aval
from corejax.interpreters.linearize import linearize_flat as linearize_flat
from corejax.interpreters.looping import for_each_element as for_each_element
from corejax.interpreters.partial_eval import partial_eval_flat as partial_eval_flat
from corejax.interpreters.staging import JitTracer as JitTracer
from corejax.interpreters.transposition import zero_cotangent as zero_cotangent
from corejax.rules import OptionalRules as OptionalRules
from corejax.rules import collective_rules as collective_rules

__all__ = [
    "BatchTrace",
    "BatchTracer",
    "DecidedBy",
    "JVPTrace",
    "JitTracer",
    "OptionalRules",
    "align_batch_axes",
    "as_tangent",
    "axes_in_scope",
    "axis_size_of",
    "batch_flat",
    "check_outputs",
    "collective_rules",
    "decided_by",
    "float0",
    "for_each_element",
    "in_context",
    "leaves_like",
    "linearize_flat",
    "mapped_aval",
    "named_as",
    "named_axes",
    "on_context",
    "partial_eval_flat",
    "recording_trace",
    "replayed_source",
    "replaying",
    "scope",
    "structural",
    "tangent_aval",
    "trace_stack",
    "unbound_axis",
    "unmapped_aval",
    "why_not_differentiable",
    "zero_cotangent",
]

if _TYPE_CHECKING:
    from corejax.transforms.flattening import check_outputs as check_outputs
    from corejax.transforms.flattening import float0 as float0
    from corejax.transforms.flattening import leaves_like as leaves_like
else:
    __getattr__, __dir__ = _when_used(
        __name__,
        {
            "corejax.transforms.flattening": "check_outputs float0 leaves_like",
        },
    )
