"""Convolutions.

`dimension_numbers` defines the roles of axes and the size of the result; `conv` has the primitive, `_on_host` its impl
rule, and `forms` the functions defined in terms of it.
"""
