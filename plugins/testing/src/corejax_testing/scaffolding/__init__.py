"""`corejax new-plugin`: a complete distribution to start from.

`names` are those of the new distribution, checked; `writing` makes files of the templates; `first_manifest` has another
Python describe what was written.
"""
