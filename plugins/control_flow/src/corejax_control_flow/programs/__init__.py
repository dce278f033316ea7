"""Tracing of users' functions and transformations of jaxprs, which all other packages use.

`tracing.py` traces a function to a jaxpr, or reuses an equal earlier one. `rewriting.py` transforms jaxprs.
`weak_types.py` and `messages.py` compare and print types.
"""
