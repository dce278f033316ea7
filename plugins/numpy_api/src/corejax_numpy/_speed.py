"""What was measured: the sizes, in elements, at which another way to compute becomes faster."""

from __future__ import annotations

FEW_INTEGERS = 4096  # up to here the program of conversion and function is faster; of more the conversion takes longest
FEW_TO_COMPARE = 16  # of a set, up to here comparing with each element is faster than sorting
FEW_COEFFICIENTS = 8  # up to here `polyval` begins with the first coefficient
UNROLLED = 32  # coefficients up to which `polyval` is no loop
MANY_VALUES, UNROLLED_FOR_MANY = 1 << 18, 128  # from so many values on up to so many: one pass over them when compiled
LOOKED_UP = 1 << 13  # of values to search for, from here on a compiled program is faster, at the second call
