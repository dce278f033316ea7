"""Solutions of equations, differentiated by the equation: `custom_linear_solve`, `custom_root`.

`custom_linear_solve.py` is the function and its primitive with all rules. `custom_root.py` is made of `custom_jvp`.
"""
