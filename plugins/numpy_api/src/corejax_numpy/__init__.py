"""NumPy's functions over the array primitives: `corejax.numpy` and `corejax.nn`. The plugin defines no primitives."""
