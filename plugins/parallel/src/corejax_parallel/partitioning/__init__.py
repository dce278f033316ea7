"""Functions whose authors say how they are done in parts: `corejax.experimental.custom_partitioning`."""
