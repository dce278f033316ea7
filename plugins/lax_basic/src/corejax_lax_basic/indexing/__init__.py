"""Parts of arrays at places that are data: dynamic slices.

Gathers and scatters belong here.
"""
