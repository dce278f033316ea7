"""Eager products: XLA computes them, as in JAX, so that their last bits are those of compiled products."""

from __future__ import annotations

from corejax.extend import impl_rules
from corejax.lax import dot_general_p


def compile_products() -> None:
    """Compile eager products of inexact numbers of any size; corejax leaves small ones to NumPy by default."""
    rule = impl_rules.rule_of(dot_general_p)
    assert rule is not None
    impl_rules.register(dot_general_p, rule.fn, override=True, large=dict.fromkeys(_DTYPES, 0))


_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
