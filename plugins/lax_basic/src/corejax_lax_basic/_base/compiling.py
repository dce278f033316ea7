"""Large operations, which NumPy does slower than a compiled program of one equation.

`HALVES` and kin are what the flag `large` of impl rules takes: the dtypes of operands with which NumPy was found slower
for a million elements, the time of copying them counted in. What only reads and writes memory is not: NumPy is as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import BackendError, MissingRuleError, Primitive, impl_rules

HALVES = ("bfloat16", "float16")  # NumPy converts each element
SINGLES = (*HALVES, "float32")
REALS = (*SINGLES, "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")

_found: dict[Primitive, Callable[..., Any]] = {}


def run_compiled(primitive: Primitive, *arrays: Any, **params: Any) -> Any:
    """What the compiled program of one equation gives for `Array`s; None where nothing compiles or runs it here.

    For impl rules that say themselves when they leave their work to it; others are registered with `large`.
    """
    try:
        found = _found.get(primitive) or _found.setdefault(primitive, impl_rules.derived(primitive))
        return found(*arrays, **params)
    except (MissingRuleError, BackendError):
        return None
