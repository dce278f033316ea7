"""Convolutions.

`dimension_numbers` says which axis is what, `shapes` how large the result is; `conv` has the primitive, `_on_host` and
`_batching` two of its rules, `forms` the functions said in terms of it.
"""
