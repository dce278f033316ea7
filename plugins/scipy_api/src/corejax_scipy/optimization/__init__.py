"""Methods of `corejax.scipy.optimize`."""
