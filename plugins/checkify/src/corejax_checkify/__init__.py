"""Run-time checks of traced programs; see `corejax.checkify`."""
