"""Names that plugins add to `corejax.tree`, for type checkers: `corejax write-stubs` writes a stub for this file."""
