"""Many elements made one, or each combined with all that go before it.

A primitive is a row of `_family.reduction`, `index_reduction` or `cumulative`; a `Fold` says how two are combined.
associative_scan takes any function for that.
"""
