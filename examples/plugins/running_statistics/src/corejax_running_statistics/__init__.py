"""Running means and variances, by primitives on references; see `corejax.running_statistics`."""
