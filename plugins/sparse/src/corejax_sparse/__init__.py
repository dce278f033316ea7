"""Sparse arrays for corejax; the names are in `corejax.experimental.sparse`."""
