"""StableHLO of corejax_lax_basic.indexing."""
