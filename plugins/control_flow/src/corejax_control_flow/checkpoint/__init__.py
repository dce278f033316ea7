"""`checkpoint` (`remat`): inner values of a function computed again in the backward pass instead of kept.

`checkpoint.py` makes the function a program, `checkpoint_rules.py` is the primitive `remat2` with its rules.
`policies.py` says which values are kept all the same, `recomputation.py` computes the others again, and
`saved_residuals.py` says which values a gradient keeps.
"""
