"""`checkpoint` (`remat`): the backward pass recomputes inner values of a function, instead of saving them.

`checkpoint.py` traces the function, `checkpoint_rules.py` has the primitive `remat2` with its rules. `policies.py`
defines policies, which select values to save; `programs/recomputation.py` applies them. `saved_residuals.py` lists the
values that a gradient saves.
"""
