"""Functions of the elements at one place: arithmetic, powers, comparisons, logic, choices, complex numbers.

A primitive is a row of `_family.unary` or `_family.binary`, with all that it is: impl, types, derivative, StableHLO.
A row that is no single StableHLO operation has a translation rule in `translations.elementwise`.
"""
