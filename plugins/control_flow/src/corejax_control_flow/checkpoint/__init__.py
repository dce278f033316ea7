"""`checkpoint`: inner values of a function computed again in the backward pass instead of kept."""
