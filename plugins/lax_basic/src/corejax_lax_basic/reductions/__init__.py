"""Reductions of many elements to one, and cumulative reductions of each element with all before it.

A primitive is a row of `_family.reduction`, `index_reduction` or `cumulative`; a `Fold` describes how two elements are
combined. `associative_scan` takes any associative function.
"""
