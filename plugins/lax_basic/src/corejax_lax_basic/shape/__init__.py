"""Elements moved, repeated, dropped and joined, without arithmetic on them.

rearranging (reshape, transpose, ...), broadcasting, slicing (slice and pad), joining (concatenate, split, ...).
"""
