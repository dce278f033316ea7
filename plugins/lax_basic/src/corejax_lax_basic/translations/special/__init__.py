"""StableHLO of corejax_lax_basic.special."""
