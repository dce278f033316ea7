"""Fixed points with implicit derivatives; see `corejax.fixed_point`."""
