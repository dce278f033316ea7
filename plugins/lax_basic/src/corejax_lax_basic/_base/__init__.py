"""Helpers for every family: numbers of operands, axes and shapes, type rules, scalars, derivatives of rows.

`by_name` looks up primitives of higher packages when a rule runs; nothing here imports another package of the plugin.
`samples` builds the examples that each package provides for checks of its rules.
"""
