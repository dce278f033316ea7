"""Random keys and numbers: `corejax.random`."""
