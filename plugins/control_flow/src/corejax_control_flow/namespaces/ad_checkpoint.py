"""`corejax.ad_checkpoint`: checkpointing, names for policies, and the residuals that a gradient saves."""

from corejax_control_flow.checkpoint import policies as checkpoint_policies  # noqa: F401
from corejax_control_flow.checkpoint.checkpoint import checkpoint as checkpoint
from corejax_control_flow.checkpoint.checkpoint import remat as remat
from corejax_control_flow.checkpoint.saved_residuals import Residual as Residual
from corejax_control_flow.checkpoint.saved_residuals import print_saved_residuals as print_saved_residuals
from corejax_control_flow.checkpoint.saved_residuals import saved_residuals as saved_residuals
from corejax_control_flow.markers.name import checkpoint_name as checkpoint_name

__all__ = ["Residual", "checkpoint", "checkpoint_name", "print_saved_residuals", "remat", "saved_residuals"]
