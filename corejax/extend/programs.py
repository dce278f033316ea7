"""Programs as data, and rules of primitives with programs in their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from corejax.extend._when_used import when_used as _when_used
from corejax.ir import Literal as Literal
from corejax.ir import check_jaxpr as check_jaxpr
from corejax.ir import dce as dce
from corejax.ir import dce_rules as dce_rules
from corejax.ir import eval_jaxpr as eval_jaxpr
from corejax.ir import programs_of as programs_of
from corejax.ir import register_param_type as register_param_type
from corejax.ir import subjaxprs as subjaxprs
from corejax.programs.rematerialization import Policy as Policy
from corejax.programs.rematerialization import keep_all as keep_all
from corejax.programs.rematerialization import recompute_jaxpr as recompute_jaxpr
from corejax.programs.rematerialization import recompute_rules as recompute_rules

__all__ = [
    "CallChange",
    "Literal",
    "Policy",
    "check_jaxpr",
    "dce",
    "dce_rules",
    "defrecompute",
    "eval_jaxpr",
    "keep_all",
    "parse_jaxpr",
    "programs_of",
    "recompute_jaxpr",
    "recompute_rules",
    "register_param_type",
    "same_jaxpr",
    "select_list",
    "subjaxprs",
]

if _TYPE_CHECKING:
    from corejax.interpreters.lists import select_list as select_list
    from corejax.ir import parse_jaxpr as parse_jaxpr
    from corejax.ir import same_jaxpr as same_jaxpr
    from corejax.programs.call import CallChange as CallChange
    from corejax.programs.call import defrecompute as defrecompute
else:
    __getattr__, __dir__ = _when_used(
        __name__,
        {
            "corejax.interpreters.lists": "select_list",
            "corejax.ir": "parse_jaxpr same_jaxpr",
            "corejax.programs.call": "CallChange defrecompute",
        },
    )
