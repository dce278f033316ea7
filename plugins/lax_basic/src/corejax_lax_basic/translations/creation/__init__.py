"""StableHLO of corejax_lax_basic.creation."""
