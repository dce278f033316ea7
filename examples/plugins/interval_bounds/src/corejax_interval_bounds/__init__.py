"""Interval bound propagation; see `corejax.interval_bounds`."""
