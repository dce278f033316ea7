"""Integers of two bits over several CPU devices: XLA writes beyond the results of collectives of these, and ends the
process where it puts elements of neighbouring devices beside each other. Such programs are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from corejax.extend import BackendError, ShapedArray
from corejax_xla_backend._hlo_text import Module

# What devices do to their own parts, and what contains other operations.
_NUMBERS = {"abs", "add", "clamp", "compare", "divide", "maximum", "minimum", "multiply", "negate", "remainder"}
_BITS = {"and", "count_leading_zeros", "not", "or", "popcnt", "xor"}
_SHIFTS = {"shift_left", "shift_right_arithmetic", "shift_right_logical"}
_CONTAINING = {"case", "if", "while", "sdy.manual_computation"}
_AS_THEY_ARE = {"broadcast_in_dim", "convert", "optimization_barrier", "reshape", "select", "sdy.sharding_constraint"}
_APART = _NUMBERS | _BITS | _SHIFTS | _CONTAINING | _AS_THEY_ARE | {"power", "sign", "transpose"}
_MADE = re.compile(r"\b([su])2\[")
_MOVING = {"all-gather", "all-to-all", "collective-permute", "ragged-all-to-all"}


def check_divided(name: str, avals: Iterable[ShapedArray]) -> None:
    """Refuse an operation, with operands of these types, that the compiler divides among CPU devices.

    Raises:
        BackendError: it moves integers of two bits; which primitive and line wrote it is the caller's to say.
    """
    dtype = next((a.dtype.name for a in avals if a.dtype.itemsize == 1 and a.dtype.name in ("int2", "uint2")), None)
    if dtype is not None and name not in _APART:
        raise _refused(name, dtype)


def check_collectives(name: str, text: str, optimised: Callable[[], str]) -> None:
    """Refuse a program in which CPU devices send each other integers of two bits.

    `text` is its StableHLO, `optimised` gives what XLA made of it.

    Raises:
        BackendError: there is such an operation; names it, and the user's line where that is known.
    """
    if "i2>" not in text:
        return
    module = Module(optimised())
    for one in (x for computation in module.computations.values() for x in computation):
        found = _MADE.search(one.type) if one.opcode.removesuffix("-start") in _MOVING else None
        if found is not None:
            line = f" at {where}" if (where := module.line(one)) else ""
            what = f"{one.opcode} for {one.op_name or 'a result'}{line}"
            raise _refused(f"jit of {name}: {what}", "uint2" if found[1] == "u" else "int2")


def _refused(what: str, dtype: str) -> BackendError:
    return BackendError(
        f"{what}: XLA gives wrong numbers of {dtype} that go from one CPU device to another. Convert them before, "
        f"x.astype('int8'), and back where they are not moved any more, y.astype({dtype!r})"
    )
