"""`erfcx` and `lambertw` as primitives; see `corejax.special_functions`."""
