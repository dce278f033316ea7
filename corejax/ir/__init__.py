"""The intermediate representation: jaxprs as data, and functions that check, run, print and compare them.

A reader may take the modules in this order:

    jaxpr      variables, literals, equations, programs; constants in and out
    check      the type checker, with the invariants of a well-typed program
    interpret  `eval_jaxpr`, which runs a program
    dce        dead-code elimination, and its rules for equations with programs
    printer    programs as text; `values` has the text of literals, constants and parameters
    equality   alpha-equivalence of programs
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from corejax.base.texts import no_such_name
from corejax.ir.check import check_jaxpr as check_jaxpr
from corejax.ir.check import check_partial_eval as check_partial_eval
from corejax.ir.dce import dce as dce
from corejax.ir.dce import dce_jaxpr as dce_jaxpr
from corejax.ir.dce import dce_rules as dce_rules
from corejax.ir.interpret import eval_jaxpr as eval_jaxpr
from corejax.ir.interpret import jaxpr_as_fun as jaxpr_as_fun
from corejax.ir.jaxpr import Atom as Atom
from corejax.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from corejax.ir.jaxpr import Jaxpr as Jaxpr
from corejax.ir.jaxpr import JaxprEqn as JaxprEqn
from corejax.ir.jaxpr import Literal as Literal
from corejax.ir.jaxpr import Var as Var
from corejax.ir.jaxpr import bind_consts as bind_consts
from corejax.ir.jaxpr import close_over_consts as close_over_consts
from corejax.ir.jaxpr import parse_jaxpr as parse_jaxpr
from corejax.ir.jaxpr import printer
from corejax.ir.jaxpr import programs_of as programs_of
from corejax.ir.jaxpr import subjaxprs as subjaxprs
from corejax.ir.values import register_param_type as register_param_type

if TYPE_CHECKING:
    from corejax.ir.equality import same_jaxpr as same_jaxpr
    from corejax.ir.printer import jaxpr_text as jaxpr_text

# The modules that work on text are imported on first use, because most programs are never printed.
_LAZY = {"eqn_text": "printer", "jaxpr_text": "printer", "same_jaxpr": "equality"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise no_such_name("corejax.ir", name, (*globals(), *_LAZY))
    return getattr(importlib.import_module(f"corejax.ir.{_LAZY[name]}"), name)


printer.provide(__getattr__)
