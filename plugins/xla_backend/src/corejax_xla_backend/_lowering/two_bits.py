"""Checks for two-bit integers over several CPU devices.

XLA's collectives of two-bit integers write past the end of their results, and XLA aborts the process if it exchanges
elements between neighbouring devices. Such programs raise BackendError instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from corejax.extend import BackendError, ShapedArray
from corejax_xla_backend._hlo_text import Module

# Operations that each device runs on its own part, and operations that contain others.
_NUMBERS = {"abs", "add", "clamp", "compare", "divide", "maximum", "minimum", "multiply", "negate", "remainder"}
_BITS = {"and", "count_leading_zeros", "not", "or", "popcnt", "xor"}
_SHIFTS = {"shift_left", "shift_right_arithmetic", "shift_right_logical"}
_CONTAINING = {"case", "if", "while", "sdy.manual_computation"}
_STRUCTURAL = {"broadcast_in_dim", "convert", "optimization_barrier", "reshape", "select", "sdy.sharding_constraint"}
_LOCAL = _NUMBERS | _BITS | _SHIFTS | _CONTAINING | _STRUCTURAL | {"power", "sign", "transpose"}
_TWO_BIT_TYPE = re.compile(r"\b([su])2\[")
_COLLECTIVES = {"all-gather", "all-to-all", "collective-permute", "ragged-all-to-all"}


def check_divided(name: str, avals: Iterable[ShapedArray]) -> None:
    """Raise BackendError if an operation that the compiler divides among CPU devices moves two-bit integers.

    The caller adds the primitive and the user's line.
    """
    dtype = next((a.dtype.name for a in avals if a.dtype.itemsize == 1 and a.dtype.name in ("int2", "uint2")), None)
    if dtype is not None and name not in _LOCAL:
        raise _wrong_numbers_error(name, dtype)


def check_collectives(name: str, text: str, optimised: Callable[[], str]) -> None:
    """Raise BackendError if CPU devices exchange two-bit integers in a program.

    The message names the operation, and the user's line if it is known.

    Args:
        name: the compiled function's name.
        text: the program's StableHLO.
        optimised: returns the optimised HLO text.
    """
    if "i2>" not in text:
        return
    module = Module(optimised())
    for one in (x for computation in module.computations.values() for x in computation):
        two_bit = _TWO_BIT_TYPE.search(one.type) if one.opcode.removesuffix("-start") in _COLLECTIVES else None
        if two_bit is not None:
            line = f" at {where}" if (where := module.line(one)) else ""
            what = f"{one.opcode} for {one.op_name or 'a result'}{line}"
            raise _wrong_numbers_error(f"jit of {name}: {what}", "uint2" if two_bit[1] == "u" else "int2")


def _wrong_numbers_error(what: str, dtype: str) -> BackendError:
    return BackendError(
        f"{what}: XLA returns wrong numbers if {dtype} values move between CPU devices. Convert them first, "
        f"x.astype('int8'), and convert back after the last move, y.astype({dtype!r})"
    )
