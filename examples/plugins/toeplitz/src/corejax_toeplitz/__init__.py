"""Toeplitz matrices times vectors, through the FFT; see `corejax.toeplitz`."""
