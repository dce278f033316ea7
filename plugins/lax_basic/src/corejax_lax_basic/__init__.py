"""Array primitives with all their rules; the namespace `corejax.lax`, operators and methods of arrays."""
