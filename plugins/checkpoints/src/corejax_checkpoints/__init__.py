"""Pytrees of arrays on disk: `corejax.checkpoints`."""
