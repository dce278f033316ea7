# versions, hooks
from corejax.plugins.hookspecs import hookimpl as hookimpl
from corejax.plugins._example import Example as Example
from corejax.plugins import load_everything as load_everything

# primitives, and the registries of their rules
from corejax.rules.derivation import Derivation as Derivation
from corejax.core.primitive import Primitive as Primitive
from corejax.rules import RuleRegistry as RuleRegistry
from corejax.rules import abstract_eval_rules as abstract_eval_rules
from corejax.core.primitive import find_primitive as find_primitive
from corejax.rules import impl_rules as impl_rules
from corejax.rules import jvp_rules as jvp_rules
from corejax.rules import partial_eval_jaxpr_rules as partial_eval_jaxpr_rules
from corejax.rules import partial_eval_rules as partial_eval_rules
from corejax.core.primitive import primitives as primitives
from corejax.rules import registries as registries
from corejax.rules import transpose_rules as transpose_rules
from corejax.rules import vmap_rules as vmap_rules
from corejax.rules import xla_translations as xla_translations

# types and values
from corejax.arrays.array import Array as Array
from corejax.core.avals import ShapedArray as ShapedArray
from corejax.arrays.array import as_array as as_array
from corejax import dtypes as dtypes
from corejax.core.avals import get_aval as get_aval
from corejax.arrays.array import host_value as host_value
from corejax.core.avals import is_array_like as is_array_like
from corejax import tree as tree

# rules of derivatives
from corejax.interpreters.transposition import UndefPrimal as UndefPrimal
from corejax.interpreters.jvp import add_tangents as add_tangents
from corejax.extend._defjvp import defjvp as defjvp
from corejax.extend._defjvp import defjvp_with_result as defjvp_with_result
from corejax.extend._defjvp import deflinear as deflinear
from corejax.extend._defjvp import defzero as defzero
from corejax.interpreters.jvp import instantiate as instantiate
from corejax.interpreters.transposition import is_undef_primal as is_undef_primal
from corejax.interpreters.differentiability import nondifferentiable as nondifferentiable
from corejax.interpreters.jvp import zeros_like as zeros_like

# vmap rules
from corejax.core.named_axes import axis_of_rule as axis_of_rule
from corejax.extend._defvmap import defbroadcasting as defbroadcasting
from corejax.extend._defvmap import defvectorized as defvectorized
from corejax.interpreters.batching import move_batch_axis as move_batch_axis

# traces
from corejax.interpreters.partial_eval import PartialEvalTrace as PartialEvalTrace
from corejax.core.trace import Trace as Trace
from corejax.core.trace import Tracer as Tracer
from corejax.core.trace import bottom_trace as bottom_trace
from corejax.core.trace import current_trace as current_trace
from corejax.core.trace import new_main as new_main
from corejax.core.trace import run_with_trace as run_with_trace
from corejax.core.trace import set_current_trace as set_current_trace

# programs as data, and transformations of programs
from corejax.ir import ClosedJaxpr as ClosedJaxpr
from corejax.ir import Jaxpr as Jaxpr
from corejax.ir import JaxprEqn as JaxprEqn
from corejax.ir import Var as Var
from corejax.programs.jaxpr_transforms import batch_jaxpr as batch_jaxpr
from corejax.ir import bind_consts as bind_consts
from corejax.ir import close_over_consts as close_over_consts
from corejax.programs.jaxpr_transforms import dce_jaxpr as dce_jaxpr
from corejax.interpreters.staging import decomposed as decomposed
from corejax.programs.call import defcall as defcall
from corejax.programs.host_programs import eval_jaxpr_on_host as eval_jaxpr_on_host
from corejax.base.lists import fixpoint as fixpoint
from corejax.core.primitive import flat_decomposition as flat_decomposition
from corejax.programs.jaxpr_transforms import inline_closed as inline_closed
from corejax.programs.jaxpr_transforms import inline_equations as inline_equations
from corejax.programs.call import inlining as inlining
from corejax.ir import jaxpr_as_fun as jaxpr_as_fun
from corejax.interpreters.jvp import jvp_flat as jvp_flat
from corejax.programs.jaxpr_transforms import jvp_jaxpr as jvp_jaxpr
from corejax.programs.jaxpr_transforms import memoised as memoised
from corejax.base.lists import merge_lists as merge_lists
from corejax.programs.partial_eval_jaxpr import partial_eval_jaxpr as partial_eval_jaxpr
from corejax.base.lists import partition_list as partition_list
from corejax.base.lists import split_list as split_list
from corejax.base.lists import spread_list as spread_list
from corejax.interpreters.staging import stage as stage
from corejax.interpreters.staging import stage_closed as stage_closed
from corejax.programs.jaxpr_transforms import transpose_jaxpr as transpose_jaxpr

# functions of users
from corejax.ir.debug_info import DebugInfo as DebugInfo
from corejax.transforms.flattening import FlatFunction as FlatFunction
from corejax.transforms.flattening import arg_names as arg_names
from corejax.transforms.flattening import check_arguments as check_arguments
from corejax.ir.debug_info import fun_name as fun_name
from corejax.transforms.flattening import leaf_names as leaf_names

# backends, and speed
from corejax.arrays.backends import Backend as Backend
from corejax.arrays.backends import Capabilities as Capabilities
from corejax.arrays.backends import backends as backends
from corejax.settings.config import config as config
from corejax.extend._remembered import remembered as remembered

# errors
from corejax.errors import BackendError as BackendError
from corejax.errors import MissingRuleError as MissingRuleError
from corejax.rules.attribution import attribute_to_rule as attribute_to_rule
from corejax.rules.run_rule import mismatch as mismatch

# chapters
from . import commands as commands
from . import devices as devices
from . import messages as messages
from . import plugins as plugins
from . import printing as printing
from . import programs as programs
from . import speed as speed
from . import transforms as transforms
from . import types as types
