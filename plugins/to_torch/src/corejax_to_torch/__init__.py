"""corejax programs in PyTorch; see `corejax.to_torch`."""
