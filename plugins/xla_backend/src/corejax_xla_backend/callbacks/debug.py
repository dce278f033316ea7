"""`corejax.debug`: inspect programs while they run."""

from __future__ import annotations

from corejax_xla_backend.callbacks.breakpoint import breakpoint as breakpoint
from corejax_xla_backend.callbacks.debug_callback import callback as callback
from corejax_xla_backend.callbacks.debug_print import log as log
from corejax_xla_backend.callbacks.debug_print import print as print
from corejax_xla_backend.callbacks.inspect_sharding import inspect_array_sharding as inspect_array_sharding
from corejax_xla_backend.callbacks.sharding_pictures import draw_array_sharding as draw_array_sharding
from corejax_xla_backend.callbacks.sharding_pictures import visualize_array_sharding as visualize_array_sharding
from corejax_xla_backend.callbacks.sharding_pictures import visualize_sharding as visualize_sharding
from corejax_xla_backend.collectives import collectives as collectives

__all__ = [
    "breakpoint",
    "callback",
    "collectives",
    "draw_array_sharding",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]
