"""The modules `corejax.ad_checkpoint`, `corejax.custom_batching` and `corejax.custom_derivatives`.

They re-export names. `corejax.checkpoint_policies` is `checkpoint/policies.py` itself.
"""
