"""The tables of primitives and of rule kinds. They import no arrays, so that the command reads them without NumPy."""

from __future__ import annotations

from typing import Any

from corejax.base.tables import Table

primitives: Table[str, Any] = Table(
    "primitive",
    refusal=lambda name, earlier, later: (
        f"primitive {name!r} exists: it is defined by {earlier.provenance}; {later.provenance} defines a second one. "
        f"Choose another name, for example one with your plugin's namespace ('{later.provenance.package}.{name}')."
    ),
)
registries: Table[str, Any] = Table(
    "rule kind",
    refusal=lambda kind, earlier, later: (
        f"rule kind {kind!r} exists, from {earlier.provenance}; {later.provenance} defines a second one"
    ),
)
