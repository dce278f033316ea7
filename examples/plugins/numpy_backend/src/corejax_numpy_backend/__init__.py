"""A backend on NumPy: `corejax.jit(f, backend="numpy")`."""
