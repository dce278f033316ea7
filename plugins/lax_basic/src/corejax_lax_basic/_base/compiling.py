"""Large operations, which NumPy does slower than a compiled program of one equation.

`HALVES` and kin are what the flag `large` of impl rules takes: the dtypes of operands with which NumPy was found slower
for a million elements, the time of copying them counted in. What only reads and writes memory is not: NumPy is as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import dtypes

LARGE = 1 << 18  # elements, from which on the flag counts
HALVES = ("bfloat16", "float16")  # NumPy converts each element
SINGLES = (*HALVES, "float32")
REALS = (*SINGLES, "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")


MANY_HALVES = 1 << 15  # elements from which on it pays to compile what NumPy does in float16 for each by itself


def many(*names: str, halves: int = LARGE, complexes: int = LARGE) -> dict[str, int]:
    """From how many elements on operations with these dtypes are left, for the flag.

    Args:
        names: the dtypes.
        halves: from how many on those with float16 are,
        complexes: and those with complex dtypes.
    """
    least = {"float16": halves, "complex64": complexes, "complex128": complexes}
    return {name: least.get(name, LARGE) for name in names}


def with_dtypes(*names: str) -> Callable[..., bool]:
    """Operations whose first operand has one of these dtypes, for the flag: reductions, which have small results."""
    found = frozenset(map(dtypes.dtype, names))
    return lambda avals, **params: avals[0].dtype in found


_LOOPS = {"float16": "ee", "float32": "ff", "float64": "dd"}  # NumPy's codes of the types of a loop


def unless_vectorized(ufunc: np.ufunc, *names: str) -> tuple[str, ...]:
    """Those dtypes for which NumPy has no loop of vectors on this processor.

    With one (AVX-512, say) it is several times faster than without, and faster than the compiled program.
    """
    return tuple(name for name in names if not has_vectors(ufunc, name))


def has_vectors(ufunc: np.ufunc, name: str) -> bool:
    """Whether NumPy has a loop of vectors on this processor for a dtype, with a ufunc of one operand."""
    found = _loops.get(ufunc.__name__, {}).get(_LOOPS[name], {})
    return not found.get("current", "baseline").startswith("baseline")


def _optimized_loops() -> dict[str, Any]:
    try:
        return np.lib.introspect.opt_func_info()
    except AttributeError:  # before NumPy 2.2
        return {}


_loops = _optimized_loops()
