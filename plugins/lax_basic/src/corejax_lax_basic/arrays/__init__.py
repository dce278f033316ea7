"""What arrays and tracers can do by themselves, with NumPy's meaning.

Python's operators, NumPy's methods and properties, indexing with brackets.
"""
