"""Taylor mode: corejax.experimental.jet."""
