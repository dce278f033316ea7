"""Array primitives with all of their rules, the namespace `corejax.lax`, and the operators and methods of arrays.

Primitives live in packages by what they compute. The packages, lowest first: `_base` (helpers that all packages use),
`conversion`, `shape`, `creation`, `_promotion` (operands of functions and operators), `elementwise`, `reductions`,
`indexing`, `linear`. `arrays` defines the operators and methods of arrays, `structural_operations` the operations that
interpreters call, and `lax` is the public namespace.
"""
