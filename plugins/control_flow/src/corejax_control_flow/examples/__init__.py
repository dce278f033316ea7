"""Applications of every primitive here, for whoever checks their rules (`corejax verify control_flow`)."""
