"""Special functions: error functions, gamma and beta functions with their derivatives, Bessel functions.

Eager evaluation calls SciPy, which is imported on first use. Formulas that neither SciPy nor CHLO has are written once,
in `_incomplete_gamma` and its neighbours, for NumPy arrays and StableHLO values alike.
"""
