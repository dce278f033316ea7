"""`corejax.checkpoints`: save pytrees of arrays to disk and restore them."""
