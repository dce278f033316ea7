"""The modules that users import as `corejax.ad_checkpoint`, `corejax.custom_batching` and `corejax.custom_derivatives`.

They only list names. `corejax.checkpoint_policies` is `checkpoint/policies.py` itself.
"""
