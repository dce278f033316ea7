"""What `corejax.scipy.signal` is made of."""
