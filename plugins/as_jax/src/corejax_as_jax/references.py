"""`jax.Ref` and the functions that make references and end them."""

from corejax.ref import Ref, empty_ref, free_ref, freeze, new_ref

__all__ = ["Ref", "empty_ref", "free_ref", "freeze", "new_ref"]
