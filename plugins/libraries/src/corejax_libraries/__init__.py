"""Small libraries to copy from: optimisers, layers, differential equations."""
