"""Quantised matrices, as values of a type of their own; see `corejax.quantised`."""
