"""NumPy's names over the array primitives: `corejax.numpy`, and `corejax.nn`. No primitives of its own."""
