"""The namespaces `corejax.ad_checkpoint`, `corejax.custom_batching` and `corejax.custom_derivatives`."""
