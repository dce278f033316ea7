"""Parts of arrays at places that are data.

Dynamic slices; gathers and scatters belong here. Slices at static places are in `shape`.
"""
