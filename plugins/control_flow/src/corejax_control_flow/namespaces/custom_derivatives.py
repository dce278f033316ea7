"""`corejax.custom_derivatives`: functions with custom derivatives, and helpers for their rules."""

from __future__ import annotations

from corejax_control_flow.custom.closed_over import ClosedOverError as ClosedOverError
from corejax_control_flow.custom.custom_gradient import closure_convert as closure_convert
from corejax_control_flow.custom.custom_gradient import custom_gradient as custom_gradient
from corejax_control_flow.custom.custom_jvp import custom_jvp as custom_jvp
from corejax_control_flow.custom.custom_jvp_rules import custom_jvp_call_p as custom_jvp_call_p
from corejax_control_flow.custom.custom_vjp import custom_vjp as custom_vjp
from corejax_control_flow.custom.custom_vjp_rules import custom_vjp_call_p as custom_vjp_call_p
from corejax_control_flow.custom.linear_call import linear_call as linear_call
from corejax_control_flow.custom.symbolic_zeros import CustomVJPPrimal as CustomVJPPrimal
from corejax_control_flow.custom.symbolic_zeros import SymbolicZero as SymbolicZero
from corejax_control_flow.custom.symbolic_zeros import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from corejax_control_flow.custom.symbolic_zeros import zero_from_primal as zero_from_primal
