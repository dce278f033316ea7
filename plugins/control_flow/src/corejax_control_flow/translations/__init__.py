"""StableHLO of every primitive of the plugin, imported when something is first compiled.

What is missing here is a call of a program, whose translation `defcall` registers, or has a decomposition.
"""
