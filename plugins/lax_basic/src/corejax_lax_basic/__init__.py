"""Array primitives with all their rules; the namespace `corejax.lax`, operators and methods of arrays.

Primitives live in packages by what they compute, from the ground up: `_base` (what all need), `conversion`, `shape`,
`creation`, `_promotion` (operands of functions and operators), `elementwise`, `reductions`, `indexing`, `linear`.
`arrays` gives arrays their operators and methods, `structural_operations` serves interpreters, `lax` is public.
"""
