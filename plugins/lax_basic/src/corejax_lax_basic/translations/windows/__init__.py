"""StableHLO of corejax_lax_basic.windows."""
