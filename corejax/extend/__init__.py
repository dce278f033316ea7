"""The one public, versioned module for authors of primitives, rules, transformations and plugins.

First-party plugins use nothing else of the kernel. `__all__` is the table of contents, by section; what fewer authors
need is in chapters of their own:

- `extend.programs`: programs as data, rules of primitives with programs in their parameters.
- `extend.transforms`: traces, tangents, batches and named axes, for transformations.
- `extend.types`: symbolic sizes, elements that are made of numbers, refinements of types.
- `extend.devices`: what backends are made of; memory, checks of values.
- `extend.plugins`: what plugins export, and what a kit checks them with.
- `extend.messages`: errors and warnings, the user's line, caches, blocks that are left clean.
- `extend.speed`, `extend.printing`: for an engine and for what shows programs; their names may change in any version.

Sequences of operands, tangents and results are flat lists or tuples; avals are `ShapedArray`s; `None` is the zero
tangent or cotangent, and the batching dimension of what is not mapped.

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

from typing import TYPE_CHECKING as _TYPE_CHECKING

from corejax import dtypes as dtypes
from corejax import tree as tree
from corejax.core.array import Array as Array
from corejax.core.array import as_array as as_array
from corejax.core.array import host_value as host_value
from corejax.core.avals import ShapedArray as ShapedArray
from corejax.core.avals import get_aval as get_aval
from corejax.core.avals import is_array_like as is_array_like
from corejax.core.backends import Backend as Backend
from corejax.core.backends import Capabilities as Capabilities
from corejax.core.backends import backends as backends
from corejax.core.named_axes import axis_of_rule as axis_of_rule
from corejax.core.primitive import Primitive as Primitive
from corejax.core.primitive import find_primitive as find_primitive
from corejax.core.primitive import flat_decomposition as flat_decomposition
from corejax.core.primitive import primitives as primitives
from corejax.core.trace import Trace as Trace
from corejax.core.trace import Tracer as Tracer
from corejax.core.trace import bottom_trace as bottom_trace
from corejax.core.trace import current_trace as current_trace
from corejax.core.trace import new_main as new_main
from corejax.core.trace import run_with_trace as run_with_trace
from corejax.core.trace import set_current_trace as set_current_trace
from corejax.errors import BackendError as BackendError
from corejax.errors import MissingRuleError as MissingRuleError
from corejax.extend._when_used import when_used as _when_used
from corejax.interpreters.batching import move_batch_axis as move_batch_axis
from corejax.interpreters.batching_helpers import defbroadcasting as defbroadcasting
from corejax.interpreters.batching_helpers import defvectorized as defvectorized
from corejax.interpreters.debug_info import DebugInfo as DebugInfo
from corejax.interpreters.debug_info import fun_name as fun_name
from corejax.interpreters.differentiability import nondifferentiable as nondifferentiable
from corejax.interpreters.engine import remembered as remembered
from corejax.interpreters.host_programs import eval_jaxpr_on_host as eval_jaxpr_on_host
from corejax.interpreters.jvp import add_tangents as add_tangents
from corejax.interpreters.jvp import instantiate as instantiate
from corejax.interpreters.jvp import jvp_flat as jvp_flat
from corejax.interpreters.jvp import zeros_like as zeros_like
from corejax.interpreters.jvp_helpers import defjvp as defjvp
from corejax.interpreters.jvp_helpers import defjvp_with_result as defjvp_with_result
from corejax.interpreters.jvp_helpers import deflinear as deflinear
from corejax.interpreters.jvp_helpers import defzero as defzero
from corejax.interpreters.partial_eval import PartialEvalTrace as PartialEvalTrace
from corejax.interpreters.staging import decomposed as decomposed
from corejax.interpreters.staging import stage as stage
from corejax.interpreters.staging import stage_closed as stage_closed
from corejax.interpreters.transposition import UndefPrimal as UndefPrimal
from corejax.interpreters.transposition import is_undef_primal as is_undef_primal
from corejax.ir import ClosedJaxpr as ClosedJaxpr
from corejax.ir import Jaxpr as Jaxpr
from corejax.ir import JaxprEqn as JaxprEqn
from corejax.ir import Var as Var
from corejax.ir import bind_consts as bind_consts
from corejax.ir import close_over_consts as close_over_consts
from corejax.ir import jaxpr_as_fun as jaxpr_as_fun
from corejax.plugins import load_everything as load_everything
from corejax.plugins._example import Example as Example
from corejax.plugins.hookspecs import hookimpl as hookimpl
from corejax.rules import RuleRegistry as RuleRegistry
from corejax.rules import abstract_eval_rules as abstract_eval_rules
from corejax.rules import impl_rules as impl_rules
from corejax.rules import jvp_rules as jvp_rules
from corejax.rules import partial_eval_jaxpr_rules as partial_eval_jaxpr_rules
from corejax.rules import partial_eval_rules as partial_eval_rules
from corejax.rules import registries as registries
from corejax.rules import transpose_rules as transpose_rules
from corejax.rules import vmap_rules as vmap_rules
from corejax.rules import xla_translations as xla_translations
from corejax.rules.attribution import attribute_to_rule as attribute_to_rule
from corejax.rules.derivation import Derivation as Derivation
from corejax.rules.run_rule import mismatch as mismatch
from corejax.settings.config import config as config

__all__ = [  # noqa: RUF022  by section
    # versions, hooks
    "hookimpl",
    "Example",
    "load_everything",
    # primitives, and the registries of their rules
    "Derivation",
    "Primitive",
    "RuleRegistry",
    "abstract_eval_rules",
    "find_primitive",
    "impl_rules",
    "jvp_rules",
    "partial_eval_jaxpr_rules",
    "partial_eval_rules",
    "primitives",
    "registries",
    "transpose_rules",
    "vmap_rules",
    "xla_translations",
    # types and values
    "Array",
    "ShapedArray",
    "as_array",
    "dtypes",
    "get_aval",
    "host_value",
    "is_array_like",
    "tree",
    # rules of derivatives
    "UndefPrimal",
    "add_tangents",
    "defjvp",
    "defjvp_with_result",
    "deflinear",
    "defzero",
    "instantiate",
    "is_undef_primal",
    "nondifferentiable",
    "zeros_like",
    # vmap rules
    "axis_of_rule",
    "defbroadcasting",
    "defvectorized",
    "move_batch_axis",
    # traces
    "PartialEvalTrace",
    "Trace",
    "Tracer",
    "bottom_trace",
    "current_trace",
    "new_main",
    "run_with_trace",
    "set_current_trace",
    # programs as data, and what is made of them
    "ClosedJaxpr",
    "Jaxpr",
    "JaxprEqn",
    "Var",
    "batch_jaxpr",
    "bind_consts",
    "close_over_consts",
    "dce_jaxpr",
    "decomposed",
    "defcall",
    "eval_jaxpr_on_host",
    "fixpoint",
    "flat_decomposition",
    "inline_closed",
    "inline_equations",
    "inlining",
    "jaxpr_as_fun",
    "jvp_flat",
    "jvp_jaxpr",
    "memoised",
    "merge_lists",
    "partial_eval_jaxpr",
    "partition_list",
    "split_list",
    "spread_list",
    "stage",
    "stage_closed",
    "transpose_jaxpr",
    # functions of users
    "DebugInfo",
    "FlatFunction",
    "arg_names",
    "check_arguments",
    "fun_name",
    "leaf_names",
    # backends, and speed
    "Backend",
    "Capabilities",
    "backends",
    "config",
    "remembered",
    # errors
    "BackendError",
    "MissingRuleError",
    "attribute_to_rule",
    "mismatch",
]

if _TYPE_CHECKING:
    from corejax.interpreters.lists import fixpoint as fixpoint
    from corejax.interpreters.lists import merge_lists as merge_lists
    from corejax.interpreters.lists import partition_list as partition_list
    from corejax.interpreters.lists import split_list as split_list
    from corejax.interpreters.lists import spread_list as spread_list
    from corejax.programs.call import defcall as defcall
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
    from corejax.transforms.flattening import arg_names as arg_names
    from corejax.transforms.flattening import check_arguments as check_arguments
    from corejax.transforms.flattening import leaf_names as leaf_names
else:
    __getattr__, __dir__ = _when_used(
        __name__,
        {
            "corejax.interpreters.lists": "fixpoint merge_lists partition_list split_list spread_list",
            "corejax.programs.call": "defcall inlining",
            "corejax.programs.jaxpr_transforms": (
                "batch_jaxpr dce_jaxpr inline_closed inline_equations jvp_jaxpr memoised transpose_jaxpr"
            ),
            "corejax.programs.partial_eval_jaxpr": "partial_eval_jaxpr",
            "corejax.transforms.flattening": "FlatFunction arg_names check_arguments leaf_names",
        },
        {
            "devices": "corejax.extend.devices",
            "messages": "corejax.extend.messages",
            "plugins": "corejax.extend.plugins",
            "printing": "corejax.extend.printing",
            "programs": "corejax.extend.programs",
            "speed": "corejax.extend.speed",
            "transforms": "corejax.extend.transforms",
            "types": "corejax.extend.types",
        },
    )
