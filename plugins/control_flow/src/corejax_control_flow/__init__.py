"""Structured control flow for corejax: `cond`, `switch` and `scan`."""
