"""Special functions: the error function's kin, gamma and beta functions with their derivatives, Bessel functions.

Eager evaluation is by SciPy, which is imported when it is first needed. Formulas that neither SciPy nor CHLO has are
written once, in `_incomplete_gamma` and its neighbours, for NumPy arrays and StableHLO values alike.
"""
