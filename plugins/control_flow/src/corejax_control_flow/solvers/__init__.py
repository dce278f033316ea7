"""Solvers of equations with derivatives by implicit differentiation: `custom_linear_solve`, `custom_root`.

`custom_linear_solve.py` has the function and its primitive with all rules. `custom_root.py` uses `custom_jvp`.
"""
