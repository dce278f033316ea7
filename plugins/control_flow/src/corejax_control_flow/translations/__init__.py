"""StableHLO of every primitive here; imported when something is first compiled."""
