"""SciPy functions: corejax.scipy."""
