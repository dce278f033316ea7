"""Convolutions.

`dimension_numbers` says which axis is what, and how large the result is; `conv` has the primitive, `_on_host`
one of its rules, `forms` the functions said in terms of it.
"""
