"""`jax._src.literals`."""

from corejax_as_jax.absent import absent_class as _absent_class

TypedInt = _absent_class("TypedInt")
TypedFloat = _absent_class("TypedFloat")
TypedComplex = _absent_class("TypedComplex")
TypedNdArray = _absent_class("TypedNdArray")
