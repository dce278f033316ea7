"""Values of value types (`corejax.extend.types.ValueType`), which are stored in several arrays."""
