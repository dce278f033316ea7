"""Mutable references to arrays: `corejax.new_ref`, `corejax.ref`."""
