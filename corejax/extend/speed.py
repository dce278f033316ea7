"""For layers of evaluation: an engine, checks of what is evaluated, and what evaluates programs on NumPy arrays.

An engine (`Engine`) makes eager calls faster without changing results; `corejax-eager` is one. `Checks` look at values
and operations while a setting is on; those of `corejax-explain` do. Both use nothing of the kernel but `corejax.extend`
and this module, whose names may change in any version.
"""

from __future__ import annotations

from corejax.core.ownership import SOLE as SOLE
from corejax.core.ownership import in_own_memory as in_own_memory
from corejax.core.trace import state as state
from corejax.interpreters import evaluation as evaluation
from corejax.interpreters.checks import Checks as Checks
from corejax.interpreters.engine import Engine as Engine
from corejax.interpreters.engine import engine as engine
from corejax.interpreters.evaluation import Evaluate as Evaluate
from corejax.interpreters.evaluation import Layer as Layer
from corejax.interpreters.evaluation import bottom as bottom
from corejax.interpreters.evaluation import check_size as check_size
from corejax.interpreters.evaluation import quiet as quiet
from corejax.interpreters.evaluation import run_impl as run_impl
from corejax.interpreters.evaluation import run_quietly as run_quietly
from corejax.interpreters.evaluation import set_layer as set_layer
from corejax.interpreters.host_code import HostCode as HostCode
from corejax.interpreters.impl_results import as_promised as as_promised
from corejax.interpreters.partial_eval import PartialEvalTracer as PartialEvalTracer
from corejax.interpreters.staging import StagingTrace as StagingTrace
from corejax.interpreters.staging import program_staged as program_staged
from corejax.ir.interpret import host_literal as host_literal
from corejax.ir.interpret import last_uses as last_uses
from corejax.messages import source_info as source_info
from corejax.rules import Rule as Rule
from corejax.rules import RuleFn as RuleFn
from corejax.rules import reporting as reporting
from corejax.rules.abstract_eval import promised as promised
from corejax.rules.abstract_eval import types_changed as types_changed
from corejax.settings.memory_limit import LARGE as LARGE

__all__ = [
    "LARGE",
    "SOLE",
    "Checks",
    "Engine",
    "Evaluate",
    "HostCode",
    "Layer",
    "PartialEvalTracer",
    "Rule",
    "RuleFn",
    "StagingTrace",
    "as_promised",
    "bottom",
    "check_size",
    "engine",
    "evaluation",
    "host_literal",
    "in_own_memory",
    "last_uses",
    "program_staged",
    "promised",
    "quiet",
    "reporting",
    "run_impl",
    "run_quietly",
    "set_layer",
    "source_info",
    "state",
    "types_changed",
]
