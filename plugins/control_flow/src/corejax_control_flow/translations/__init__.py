"""Translations of the plugin's primitives to StableHLO, imported when a program is first compiled.

Primitives without a translation here call a program, for which `defcall` registers a translation, or have a
decomposition.
"""
