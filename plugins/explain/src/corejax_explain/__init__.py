"""`corejax.explain` describes a call of a function, from the reports of `corejax.extend.messages.observe`."""
