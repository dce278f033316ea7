"""Functions of the elements at one place: arithmetic, comparisons, logic, choices, complex numbers.

Families are tables with a row for each primitive.
"""
