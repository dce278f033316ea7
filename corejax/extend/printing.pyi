from corejax.ir import reader as reader
from corejax.ir.printer import Scope as Scope
from corejax.ir.printer import eqn_text as eqn_text
from corejax.ir.values import has_programs as has_programs
from corejax.ir.values import literal_scalar as literal_scalar
from corejax.ir.values import scalar_text as scalar_text
from corejax.ir.values import type_text as type_text
from corejax.ir.values import value_text as value_text
