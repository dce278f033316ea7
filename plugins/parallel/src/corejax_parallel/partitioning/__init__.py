"""Functions with a user-defined partitioning: `corejax.experimental.custom_partitioning`."""
