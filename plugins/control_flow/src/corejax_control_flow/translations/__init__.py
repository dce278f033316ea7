"""StableHLO of every primitive of the plugin, imported when something is first compiled.

Each file has the name of the file that defines the primitive. What is missing here is a call of a program, whose
translation `defcall` registers, or has a decomposition.
"""
