"""Rearranging, repeating, dropping and joining of elements, without arithmetic on them.

Modules: rearranging (reshape, transpose), broadcasting, slicing (slice, pad), joining (concatenate, split), tiling.
"""
