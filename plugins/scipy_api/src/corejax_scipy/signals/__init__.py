"""The functions of `corejax.scipy.signal`."""
