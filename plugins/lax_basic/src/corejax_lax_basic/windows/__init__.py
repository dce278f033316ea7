"""Windows that move over an array: sums and extrema of each, general reductions, and selection of an element of each.

`geometry` says how many windows there are, for convolutions too.
"""
