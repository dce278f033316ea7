"""Linear algebra: corejax.lax.linalg, corejax.numpy.linalg, corejax.scipy.linalg."""
