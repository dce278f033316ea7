"""What a call of a function did: `corejax.explain`. It listens to what `corejax.extend.messages.observe` reports."""
