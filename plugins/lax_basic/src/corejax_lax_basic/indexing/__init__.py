"""Access to arrays at positions that are data: dynamic slices, gathers and scatters.

Slices at static positions are in `shape`.
"""
