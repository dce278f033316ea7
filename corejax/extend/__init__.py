"""The one public, versioned module for authors of primitives, rules, transformations and plugins.

First-party plugins use nothing else of the kernel. `__all__` is the table of contents, by section. Sequences of
operands, tangents and results are flat lists or tuples; avals are `ShapedArray`s; `None` is the zero tangent or
cotangent, and the batching dimension of what is not mapped.

Versions. The surface (names, signatures, public attributes of classes, hooks with their arguments, rule kinds) is
frozen in `tests/packaging/extend_surface.txt`; a test prints what differs. What may change, and when:

- Names, optional arguments, hooks, hook arguments and attributes are added in any minor version of corejax. A plugin
  that needs one asks for that version: `corejax>=0.2`.
- A name is removed or renamed only after two minor versions in which using it gives a `CorejaxDeprecationWarning` that
  names the replacement. Arguments are not renamed or removed: a function whose arguments change gets a new name.
- `API_VERSION` counts what neither of these can carry: a rule signature or a hook that means something else. A plugin
  declares the one that it was made for (hook `corejax_declare_api_version`) and is refused by any other.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from corejax import dtypes as dtypes
from corejax import observe as observe
from corejax import tree as tree
from corejax.base.restoring import Restoring as Restoring
from corejax.base.restoring import run_within as run_within
from corejax.base.texts import json_text as json_text
from corejax.base.texts import shown as shown
from corejax.core.array import Array as Array
from corejax.core.array import ElementBuffer as ElementBuffer
from corejax.core.array import as_array as as_array
from corejax.core.array import bound_device as bound_device
from corejax.core.array import buffer_of as buffer_of
from corejax.core.array import device_buffer as device_buffer
from corejax.core.array import host_value as host_value
from corejax.core.array import is_spread as is_spread
from corejax.core.array import placed as placed
from corejax.core.array import wait_for as wait_for
from corejax.core.avals import Refinement as Refinement
from corejax.core.avals import ShapedArray as ShapedArray
from corejax.core.avals import conform as conform
from corejax.core.avals import from_numbers as from_numbers
from corejax.core.avals import get_aval as get_aval
from corejax.core.avals import is_array_like as is_array_like
from corejax.core.avals import join_refinements as join_refinements
from corejax.core.avals import numbers_of as numbers_of
from corejax.core.avals import physical_aval as physical_aval
from corejax.core.avals import unsplit_sharding as unsplit_sharding
from corejax.core.backend_calls import compiled_by as compiled_by
from corejax.core.backend_calls import run_by as run_by
from corejax.core.backends import DEFAULT_OPTIONS as DEFAULT_OPTIONS
from corejax.core.backends import Backend as Backend
from corejax.core.backends import Capabilities as Capabilities
from corejax.core.backends import CompileOptions as CompileOptions
from corejax.core.backends import Device as Device
from corejax.core.backends import Executable as Executable
from corejax.core.backends import RepeatableCall as RepeatableCall
from corejax.core.backends import Target as Target
from corejax.core.backends import backends as backends
from corejax.core.dims import SymbolicDim as SymbolicDim
from corejax.core.dims import as_dim as as_dim
from corejax.core.dims import max_dim as max_dim
from corejax.core.dims import min_dim as min_dim
from corejax.core.donation import donating as donating
from corejax.core.named_axes import DecidedBy as DecidedBy
from corejax.core.named_axes import axes_in_scope as axes_in_scope
from corejax.core.named_axes import axis_of_rule as axis_of_rule
from corejax.core.named_axes import axis_size_of as axis_size_of
from corejax.core.named_axes import decided_by as decided_by
from corejax.core.named_axes import named_axes as named_axes
from corejax.core.named_axes import unbound_axis as unbound_axis
from corejax.core.ownership import aligned_empty as aligned_empty
from corejax.core.primitive import Primitive as Primitive
from corejax.core.primitive import find_primitive as find_primitive
from corejax.core.primitive import flat_decomposition as flat_decomposition
from corejax.core.primitive import primitives as primitives
from corejax.core.structural import structural as structural
from corejax.core.trace import Trace as Trace
from corejax.core.trace import Tracer as Tracer
from corejax.core.trace import bottom_trace as bottom_trace
from corejax.core.trace import current_trace as current_trace
from corejax.core.trace import in_context as in_context
from corejax.core.trace import new_main as new_main
from corejax.core.trace import on_context as on_context
from corejax.core.trace import recording_trace as recording_trace
from corejax.core.trace import replayed_source as replayed_source
from corejax.core.trace import replaying as replaying
from corejax.core.trace import run_with_trace as run_with_trace
from corejax.core.trace import scope as scope
from corejax.core.trace import set_current_trace as set_current_trace
from corejax.core.trace import trace_stack as trace_stack
from corejax.errors import BackendError as BackendError
from corejax.errors import CorejaxDeprecationWarning as CorejaxDeprecationWarning
from corejax.errors import CorejaxError as CorejaxError
from corejax.errors import DerivedRuleWarning as DerivedRuleWarning
from corejax.errors import HostCallbackError as HostCallbackError
from corejax.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from corejax.errors import KeyReuseError as KeyReuseError
from corejax.errors import MissingRuleError as MissingRuleError
from corejax.errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from corejax.errors import NotDifferentiableError as NotDifferentiableError
from corejax.errors import NotLinearError as NotLinearError
from corejax.errors import PluginError as PluginError
from corejax.errors import PluginMissingError as PluginMissingError
from corejax.errors import ShardingTypeError as ShardingTypeError
from corejax.errors import UnexpectedTracerError as UnexpectedTracerError
from corejax.interpreters.batching import BatchTrace as BatchTrace
from corejax.interpreters.batching import BatchTracer as BatchTracer
from corejax.interpreters.batching import batch_flat as batch_flat
from corejax.interpreters.batching import mapped_aval as mapped_aval
from corejax.interpreters.batching import move_batch_axis as move_batch_axis
from corejax.interpreters.batching import unmapped_aval as unmapped_aval
from corejax.interpreters.batching_helpers import align_batch_axes as align_batch_axes
from corejax.interpreters.batching_helpers import defbroadcasting as defbroadcasting
from corejax.interpreters.batching_helpers import defvectorized as defvectorized
from corejax.interpreters.checks import EvaluationCheck as EvaluationCheck
from corejax.interpreters.checks import check_values as check_values
from corejax.interpreters.checks import checks_calls as checks_calls
from corejax.interpreters.checks import checks_values as checks_values
from corejax.interpreters.checks import evaluation_checks as evaluation_checks
from corejax.interpreters.debug_info import DebugInfo as DebugInfo
from corejax.interpreters.debug_info import fun_name as fun_name
from corejax.interpreters.debug_info import named_as as named_as
from corejax.interpreters.differentiability import nondifferentiable as nondifferentiable
from corejax.interpreters.differentiability import why_not_differentiable as why_not_differentiable
from corejax.interpreters.engine import comes_again as comes_again
from corejax.interpreters.engine import quick_array as quick_array
from corejax.interpreters.engine import quick_bind as quick_bind
from corejax.interpreters.engine import quick_host_value as quick_host_value
from corejax.interpreters.engine import remembered as remembered
from corejax.interpreters.engine import run_compiled as run_compiled
from corejax.interpreters.engine import run_whole as run_whole
from corejax.interpreters.host_code import HostCode as HostCode
from corejax.interpreters.host_programs import eval_jaxpr_on_host as eval_jaxpr_on_host
from corejax.interpreters.jvp import JVPTrace as JVPTrace
from corejax.interpreters.jvp import add_tangents as add_tangents
from corejax.interpreters.jvp import as_tangent as as_tangent
from corejax.interpreters.jvp import instantiate as instantiate
from corejax.interpreters.jvp import jvp_flat as jvp_flat
from corejax.interpreters.jvp import tangent_aval as tangent_aval
from corejax.interpreters.jvp import zeros_like as zeros_like
from corejax.interpreters.jvp_helpers import defjvp as defjvp
from corejax.interpreters.jvp_helpers import defjvp_with_result as defjvp_with_result
from corejax.interpreters.jvp_helpers import deflinear as deflinear
from corejax.interpreters.jvp_helpers import defzero as defzero
from corejax.interpreters.linearize import linearize_flat as linearize_flat
from corejax.interpreters.looping import for_each_element as for_each_element
from corejax.interpreters.partial_eval import PartialEvalTrace as PartialEvalTrace
from corejax.interpreters.partial_eval import partial_eval_flat as partial_eval_flat
from corejax.interpreters.staging import JitTracer as JitTracer
from corejax.interpreters.staging import decomposed as decomposed
from corejax.interpreters.staging import stage as stage
from corejax.interpreters.staging import stage_closed as stage_closed
from corejax.interpreters.transposition import UndefPrimal as UndefPrimal
from corejax.interpreters.transposition import is_undef_primal as is_undef_primal
from corejax.interpreters.transposition import zero_cotangent as zero_cotangent
from corejax.ir import ClosedJaxpr as ClosedJaxpr
from corejax.ir import Jaxpr as Jaxpr
from corejax.ir import JaxprEqn as JaxprEqn
from corejax.ir import Literal as Literal
from corejax.ir import Var as Var
from corejax.ir import bind_consts as bind_consts
from corejax.ir import check_jaxpr as check_jaxpr
from corejax.ir import close_over_consts as close_over_consts
from corejax.ir import dce as dce
from corejax.ir import dce_rules as dce_rules
from corejax.ir import eval_jaxpr as eval_jaxpr
from corejax.ir import jaxpr_as_fun as jaxpr_as_fun
from corejax.ir import programs_of as programs_of
from corejax.ir import register_param_type as register_param_type
from corejax.ir import subjaxprs as subjaxprs
from corejax.ir.values import refinement_reader as refinement_reader
from corejax.messages.homes import install_advice as install_advice
from corejax.messages.marks import attributed_rule as attributed_rule
from corejax.messages.marks import not_of_rule as not_of_rule
from corejax.messages.source_info import called_as as called_as
from corejax.messages.source_info import called_frame as called_frame
from corejax.messages.source_info import called_function as called_function
from corejax.messages.source_info import capture as capture_source
from corejax.messages.source_info import describe as describe_source
from corejax.messages.source_info import locate as locate_source
from corejax.messages.source_info import register_internal as register_internal
from corejax.messages.source_info import scope_of as scope_of
from corejax.messages.source_info import scope_text as scope_text
from corejax.messages.source_info import user_frames as user_frames
from corejax.messages.source_info import user_line as user_line
from corejax.messages.source_info import warn_user as warn_user
from corejax.messages.tracebacks import api_boundary as api_boundary
from corejax.messages.tracebacks import frames_left_out as frames_left_out
from corejax.plugins import examples_of as examples_of
from corejax.plugins import exported as exported
from corejax.plugins import exported_names as exported_names
from corejax.plugins import load_everything as load_everything
from corejax.plugins import missing_name as missing_name
from corejax.plugins import plugins as plugin_records
from corejax.plugins import provided_checks as provided_checks
from corejax.plugins._example import Example as Example
from corejax.plugins.hookspecs import API_VERSION as API_VERSION
from corejax.plugins.hookspecs import hookimpl as hookimpl
from corejax.programs.rematerialization import Policy as Policy
from corejax.programs.rematerialization import keep_all as keep_all
from corejax.programs.rematerialization import recompute_jaxpr as recompute_jaxpr
from corejax.programs.rematerialization import recompute_rules as recompute_rules
from corejax.rules import OptionalRules as OptionalRules
from corejax.rules import RuleRegistry as RuleRegistry
from corejax.rules import abstract_eval_rules as abstract_eval_rules
from corejax.rules import collective_rules as collective_rules
from corejax.rules import impl_rules as impl_rules
from corejax.rules import jvp_rules as jvp_rules
from corejax.rules import partial_eval_jaxpr_rules as partial_eval_jaxpr_rules
from corejax.rules import partial_eval_rules as partial_eval_rules
from corejax.rules import physical_rules as physical_rules
from corejax.rules import registries as registries
from corejax.rules import transpose_rules as transpose_rules
from corejax.rules import vmap_rules as vmap_rules
from corejax.rules import xla_translations as xla_translations
from corejax.rules.attribution import attribute_to_rule as attribute_to_rule
from corejax.rules.attribution import note_origin as note_origin
from corejax.rules.derivation import Derivation as Derivation
from corejax.rules.run_rule import mismatch as mismatch
from corejax.settings.caches import Exact as Exact
from corejax.settings.caches import clears_cache as clears_cache
from corejax.settings.caches import drop_oldest as drop_oldest
from corejax.settings.caches import exact as exact
from corejax.settings.config import config as config
from corejax.settings.memory_limit import bytes_text as bytes_text
from corejax.settings.memory_limit import check_memory as check_memory

__all__ = [  # noqa: RUF022  by section
    # versions
    "API_VERSION",
    "CorejaxDeprecationWarning",
    "hookimpl",
    # primitives, and the registries of their rules
    "Derivation",
    "Primitive",
    "OptionalRules",
    "RuleRegistry",
    "abstract_eval_rules",
    "collective_rules",
    "find_primitive",
    "HostCode",
    "impl_rules",
    "jvp_rules",
    "partial_eval_jaxpr_rules",
    "partial_eval_rules",
    "physical_rules",
    "primitives",
    "registries",
    "transpose_rules",
    "vmap_rules",
    "xla_translations",
    # types and values
    "Array",
    "ShapeDtypeStruct",
    "ShapedArray",
    "SymbolicDim",
    "as_array",
    "as_dim",
    "max_dim",
    "min_dim",
    "dtypes",
    "get_aval",
    "host_value",
    "is_array_like",
    "is_spread",
    "shaped_abstractify",
    "wait_for",
    # extended dtypes: elements that are made of numbers
    "ElementBuffer",
    "device_buffer",
    "from_numbers",
    "numbers_of",
    "physical_aval",
    # jvp rules: helpers and types of tangents
    "add_tangents",
    "as_tangent",
    "defjvp",
    "defjvp_with_result",
    "deflinear",
    "defzero",
    "float0",
    "instantiate",
    "nondifferentiable",
    "tangent_aval",
    "why_not_differentiable",
    "zeros_like",
    # transpose rules
    "UndefPrimal",
    "is_undef_primal",
    "zero_cotangent",
    # vmap rules
    "align_batch_axes",
    "defbroadcasting",
    "for_each_element",
    "defvectorized",
    "mapped_aval",
    "move_batch_axis",
    "unmapped_aval",
    # translation rules: the StableHLO builder
    "TranslationContext",
    "TranslationValue",
    # programs as data
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Var",
    "bind_consts",
    "check_jaxpr",
    "close_over_consts",
    "dce",
    "dce_rules",
    "decomposed",
    "eval_jaxpr",
    "eval_jaxpr_on_host",
    "flat_decomposition",
    "inline_closed",
    "inline_equations",
    "jaxpr_as_fun",
    "parse_jaxpr",
    "register_param_type",
    "same_jaxpr",
    "quick_array",
    "quick_bind",
    "quick_host_value",
    "remembered",
    "comes_again",
    "run_compiled",
    "run_whole",
    "stage",
    "stage_closed",
    "programs_of",
    "subjaxprs",
    # programs to programs: rules of higher-order primitives
    "CallChange",
    "Policy",
    "batch_jaxpr",
    "dce_jaxpr",
    "defcall",
    "defrecompute",
    "fixpoint",
    "inlining",
    "jvp_jaxpr",
    "memoised",
    "merge_lists",
    "partial_eval_jaxpr",
    "partition_list",
    "recompute_jaxpr",
    "recompute_rules",
    "select_list",
    "split_list",
    "axis_of_rule",
    "spread_list",
    "transpose_jaxpr",
    # transformations of flat functions, and of one's own
    "BatchTrace",
    "BatchTracer",
    "JVPTrace",
    "JitTracer",
    "PartialEvalTrace",
    "Trace",
    "Tracer",
    "axes_in_scope",
    "axis_size_of",
    "batch_flat",
    "bottom_trace",
    "current_trace",
    "in_context",
    "jvp_flat",
    "linearize_flat",
    "named_axes",
    "new_main",
    "on_context",
    "partial_eval_flat",
    "recording_trace",
    "replayed_source",
    "replaying",
    "run_with_trace",
    "scope",
    "set_current_trace",
    "structural",
    "trace_stack",
    "unbound_axis",
    # refinements of types
    "DecidedBy",
    "Refinement",
    "conform",
    "decided_by",
    "join_refinements",
    "refinement_reader",
    "unsplit_sharding",
    # user functions: pytrees, names for messages
    "DebugInfo",
    "FlatFunction",
    "api_boundary",
    "arg_names",
    "called_as",
    "called_frame",
    "called_function",
    "capture_source",
    "check_arguments",
    "check_outputs",
    "describe_source",
    "frames_left_out",
    "fun_name",
    "leaf_names",
    "named_as",
    "leaves_like",
    "locate_source",
    "register_internal",
    "scope_of",
    "scope_text",
    "user_frames",
    "user_line",
    "warn_user",
    "tree",
    # plugins
    "Example",
    "examples_of",
    "exported",
    "exported_names",
    "install_advice",
    "isolated_plugins",
    "load_everything",
    "manifest",
    "missing_name",
    "plugin_records",
    "provided_checks",
    # commands: functions on the command line, texts of others
    "FunctionCall",
    "takes_function",
    "json_text",
    "keep_all",
    "shown",
    # backends
    "Backend",
    "Capabilities",
    "CompileOptions",
    "DEFAULT_OPTIONS",
    "Device",
    "Executable",
    "RepeatableCall",
    "Restoring",
    "Target",
    "backends",
    "compiled_by",
    "run_by",
    "bound_device",
    "buffer_of",
    "bytes_text",
    "aligned_empty",
    "check_memory",
    "clears_cache",
    "drop_oldest",
    "Exact",
    "exact",
    "config",
    "donating",
    "observe",
    "placed",
    "run_within",
    # what settings forbid
    "EvaluationCheck",
    "check_values",
    "checks_calls",
    "checks_values",
    "evaluation_checks",
    # errors and warnings
    "BackendError",
    "CorejaxError",
    "DerivedRuleWarning",
    "HostCallbackError",
    "InconclusiveDimensionOperation",
    "KeyReuseError",
    "MissingRuleError",
    "NonConcreteBooleanIndexError",
    "NotDifferentiableError",
    "NotLinearError",
    "PluginError",
    "PluginMissingError",
    "ShardingTypeError",
    "UnexpectedTracerError",
    "attribute_to_rule",
    "attributed_rule",
    "not_of_rule",
    "note_origin",
    "mismatch",
]

if _TYPE_CHECKING:
    from corejax.cli.function_commands import FunctionCall as FunctionCall
    from corejax.cli.function_commands import takes_function as takes_function
    from corejax.interpreters.lists import fixpoint as fixpoint
    from corejax.interpreters.lists import merge_lists as merge_lists
    from corejax.interpreters.lists import partition_list as partition_list
    from corejax.interpreters.lists import select_list as select_list
    from corejax.interpreters.lists import split_list as split_list
    from corejax.interpreters.lists import spread_list as spread_list
    from corejax.interpreters.translation import TranslationContext as TranslationContext
    from corejax.interpreters.translation import TranslationValue as TranslationValue
    from corejax.ir import parse_jaxpr as parse_jaxpr
    from corejax.ir import same_jaxpr as same_jaxpr
    from corejax.plugins import _manifest as manifest
    from corejax.plugins._isolation import isolated_plugins as isolated_plugins
    from corejax.programs.call import CallChange as CallChange
    from corejax.programs.call import defcall as defcall
    from corejax.programs.call import defrecompute as defrecompute
    from corejax.programs.call import inlining as inlining
    from corejax.programs.jaxpr_transforms import batch_jaxpr as batch_jaxpr
    from corejax.programs.jaxpr_transforms import dce_jaxpr as dce_jaxpr
    from corejax.programs.jaxpr_transforms import inline_closed as inline_closed
    from corejax.programs.jaxpr_transforms import inline_equations as inline_equations
    from corejax.programs.jaxpr_transforms import jvp_jaxpr as jvp_jaxpr
    from corejax.programs.jaxpr_transforms import memoised as memoised
    from corejax.programs.jaxpr_transforms import transpose_jaxpr as transpose_jaxpr
    from corejax.programs.partial_eval_jaxpr import partial_eval_jaxpr as partial_eval_jaxpr
    from corejax.transforms.flattening import FlatFunction as FlatFunction
    from corejax.transforms.flattening import ShapeDtypeStruct as ShapeDtypeStruct
    from corejax.transforms.flattening import arg_names as arg_names
    from corejax.transforms.flattening import check_arguments as check_arguments
    from corejax.transforms.flattening import check_outputs as check_outputs
    from corejax.transforms.flattening import float0 as float0
    from corejax.transforms.flattening import leaf_names as leaf_names
    from corejax.transforms.flattening import leaves_like as leaves_like
    from corejax.transforms.flattening import shaped_abstractify as shaped_abstractify
else:  # a type checker would take it for every name that there is not
    # In no first operation: imported when they are used.
    _HOMES = {
        "corejax.ir": "parse_jaxpr same_jaxpr",
        "corejax.programs.call": "CallChange defcall defrecompute inlining",
        "corejax.programs.jaxpr_transforms": (
            "batch_jaxpr dce_jaxpr inline_closed inline_equations jvp_jaxpr memoised transpose_jaxpr"
        ),
        "corejax.interpreters.lists": "fixpoint merge_lists partition_list select_list split_list spread_list",
        "corejax.programs.partial_eval_jaxpr": "partial_eval_jaxpr",
        "corejax.cli.function_commands": "FunctionCall takes_function",
        "corejax.plugins._isolation": "isolated_plugins",
        "corejax.transforms.flattening": (
            "FlatFunction ShapeDtypeStruct arg_names check_arguments check_outputs float0 leaf_names leaves_like "
            "shaped_abstractify"
        ),
        "corejax.interpreters.translation": "TranslationContext TranslationValue",
    }
    _WHEN_USED = {name: home for home, text in _HOMES.items() for name in text.split()}

    def __dir__() -> list[str]:
        return sorted({*globals(), *_WHEN_USED, "manifest"})

    def __getattr__(name: str) -> _Any:
        if name == "manifest":
            return _import_module("corejax.plugins._manifest")
        home = _WHEN_USED.get(name)
        if home is not None:
            found = globals()[name] = getattr(_import_module(home), name)
            return found
        from corejax.base.texts import no_such_name  # needed for an error only

        raise no_such_name(__name__, name, __all__)
