"""Small example libraries: optimisers, neural network layers, ordinary differential equations."""
