"""Structured control flow for corejax: `cond`, `switch` and `scan`; `checkpoint`, names and barriers."""
