"""What arrays and tracers can do by themselves: Python's operators, NumPy's methods, indexing with brackets."""
