"""Arrays made of nothing.

Filled with one value, or with their index along an axis.
"""
