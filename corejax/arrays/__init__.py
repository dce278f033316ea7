"""Values: arrays, the backends that hold their buffers, and cells, which are variables of arrays."""
