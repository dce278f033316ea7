"""Types: symbolic sizes, elements that are made of numbers, and what a plugin says of a type beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from corejax.core.array import ElementBuffer as ElementBuffer
from corejax.core.array import device_buffer as device_buffer
from corejax.core.avals import Refinement as Refinement
from corejax.core.avals import conform as conform
from corejax.core.avals import from_numbers as from_numbers
from corejax.core.avals import join_refinements as join_refinements
from corejax.core.avals import numbers_of as numbers_of
from corejax.core.avals import physical_aval as physical_aval
from corejax.core.avals import unsplit_sharding as unsplit_sharding
from corejax.core.dims import SymbolicDim as SymbolicDim
from corejax.core.dims import as_dim as as_dim
from corejax.core.dims import max_dim as max_dim
from corejax.core.dims import min_dim as min_dim
from corejax.extend._when_used import when_used as _when_used
from corejax.ir.values import refinement_reader as refinement_reader
from corejax.rules import physical_rules as physical_rules

__all__ = [
    "ElementBuffer",
    "Refinement",
    "ShapeDtypeStruct",
    "SymbolicDim",
    "as_dim",
    "conform",
    "device_buffer",
    "from_numbers",
    "join_refinements",
    "max_dim",
    "min_dim",
    "numbers_of",
    "physical_aval",
    "physical_rules",
    "refinement_reader",
    "shaped_abstractify",
    "unsplit_sharding",
]

if _TYPE_CHECKING:
    from corejax.transforms.flattening import ShapeDtypeStruct as ShapeDtypeStruct
    from corejax.transforms.flattening import shaped_abstractify as shaped_abstractify
else:
    __getattr__, __dir__ = _when_used(
        __name__,
        {
            "corejax.transforms.flattening": "ShapeDtypeStruct shaped_abstractify",
        },
    )
