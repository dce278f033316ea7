"""Windows that move over an array: their sums and extrema, general reductions, and selection of an element of each.

`geometry` computes the number and place of windows, also for convolutions.
"""
