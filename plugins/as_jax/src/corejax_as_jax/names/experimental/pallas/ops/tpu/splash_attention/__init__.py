"""`jax.experimental.pallas.ops.tpu.splash_attention`: corejax has no Pallas."""

from corejax_as_jax.absent import absent_class as _absent_class

splash_attention_kernel = _absent_class("splash_attention_kernel")
splash_attention_mask = _absent_class("splash_attention_mask")
