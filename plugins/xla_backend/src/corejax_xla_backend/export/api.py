"""`corejax.export`: export functions as artifacts, with the API of `jax.export`."""

from corejax.extend.messages import InconclusiveDimensionOperation
from corejax_xla_backend.export.bounds import symbolic_dim_bounds
from corejax_xla_backend.export.dims import SymbolicScope
from corejax_xla_backend.export.exported import (
    DisabledSafetyCheck,
    Exported,
    deserialize,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from corejax_xla_backend.export.exporting import default_export_platform, export
from corejax_xla_backend.export.shapes import is_symbolic_dim, symbolic_args_specs, symbolic_shape
from corejax_xla_backend.export.trees import register_namedtuple_serialization, register_pytree_node_serialization

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "InconclusiveDimensionOperation",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
]
