"""`corejax.custom_batching`: functions with vmap rules of their own."""

from __future__ import annotations

from corejax_control_flow.custom.custom_vmap import custom_vmap as custom_vmap
from corejax_control_flow.custom.custom_vmap import sequential_vmap as sequential_vmap
