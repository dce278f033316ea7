"""Fourier transforms: corejax.lax.fft, corejax.numpy.fft."""
