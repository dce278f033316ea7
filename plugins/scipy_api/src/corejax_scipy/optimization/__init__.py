"""The methods of `corejax.scipy.optimize`."""
