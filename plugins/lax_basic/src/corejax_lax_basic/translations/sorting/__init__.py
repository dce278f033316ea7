"""StableHLO of corejax_lax_basic.sorting."""
