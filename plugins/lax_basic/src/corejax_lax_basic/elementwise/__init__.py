"""Elementwise functions: arithmetic, powers, comparisons, logic, selection, complex numbers.

A primitive is a row of `_family.unary` or `_family.binary`, which holds its impl, type rule, derivative and StableHLO
name. A row that is no single StableHLO operation has a translation rule in `translations.elementwise`.
"""
