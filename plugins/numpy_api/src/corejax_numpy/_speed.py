"""Measured thresholds: the sizes, in elements, from which another implementation is faster."""

from __future__ import annotations

# A cached program of conversion and function is faster for up to so many integers; then the conversion dominates.
FEW_INTEGERS = 4096
# Comparing with each element of a set is faster than sorting for up to so many elements.
FEW_TO_COMPARE = 16
# `polyval` starts from the first coefficient for up to so many coefficients, and has no loop up to `UNROLLED`.
FEW_COEFFICIENTS = 8
UNROLLED = 32
# For at least MANY_VALUES values, `polyval` unrolls up to UNROLLED_FOR_MANY coefficients: XLA fuses them into one pass.
MANY_VALUES, UNROLLED_FOR_MANY = 1 << 18, 128
# To search for at least so many values, a compiled program is faster, from the second call on.
LOOKED_UP = 1 << 13
