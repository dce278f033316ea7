"""Types, values and numbers in MLIR's syntax."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray
from corejax.extend.devices import bytes_text
from corejax.extend.messages import clears_cache
from corejax.extend.types import SymbolicDim
from corejax_xla_backend._element_types import ELEMENT_TYPES
from corejax_xla_backend._parts import is_stored

_ADDRESSABLE = 1 << 48  # bytes; XLA's sums of a program's sizes would overflow for larger values
_types: dict[ShapedArray, str] = {}
clears_cache(_types.clear)


def element_type(dtype: Any) -> str:
    """Return MLIR's name of a NumPy dtype (StableHLO specification, "Types").

    Raises:
        TypeError: StableHLO has no such type.
    """
    name = np.dtype(dtype).name
    try:
        return ELEMENT_TYPES[name]
    except KeyError:
        raise TypeError(f"dtype {name} has no StableHLO element type") from None


def tensor_type(aval: ShapedArray) -> str:
    """Return MLIR's tensor type of an aval: `tensor<3x4xf32>`; of a stored value, the types of its parts."""
    text = _types.get(aval)
    if text is None:
        if is_stored(aval):
            return ", ".join(map(tensor_type, aval.parts()))
        if aval.nbytes > _ADDRESSABLE:
            takes = f"an array of shape {aval.shape} and dtype {aval.dtype.name} takes {bytes_text(aval.nbytes)}"
            raise MemoryError(f"{takes}, which is more than a program can address")
        dims = "".join(f"{d}x" for d in aval.shape)
        text = f"tensor<{dims}{element_type(aval.dtype)}>"
        if not any(isinstance(d, SymbolicDim) for d in aval.shape):  # symbolic sizes belong to one export
            _types[aval] = text
    return text


# Bits of `Value.origins` in addition to the bits of arguments.
OWN = 1
KNOWN_NAN = 2


class Value:
    """A value in a StableHLO program.

    Attributes:
        name: its SSA name, `%12`.
        aval: its type; the weak type has no meaning here.
        origins: a bit set of what the value is computed from: one bit for each argument of the function and of the
            enclosing regions, `OWN` for operations without operands, and `KNOWN_NAN` for constants that are NaN.
        chain: the number of elementwise operations that XLA computes for it in the loop that reads it; see `chains`.
    """

    __slots__ = ("aval", "chain", "name", "origins")

    known: Any = None  # set by `KnownValue`

    def __init__(self, name: str, aval: ShapedArray, origins: int = 0) -> None:
        self.name = name
        self.aval = aval
        self.origins = origins
        self.chain = 0

    def __repr__(self) -> str:
        return f"{self.name}: {tensor_type(self.aval)}"


class PackedValue(Value):
    """A value that is stored in other arrays: the values of these, which operations take one after the other.

    Attributes:
        parts: the values.
    """

    __slots__ = ("parts",)

    def __init__(self, aval: ShapedArray, parts: Sequence[Value]) -> None:
        super().__init__(", ".join(part.name for part in parts), aval)
        self.parts = tuple(parts)
        for part in parts:
            self.origins |= part.origins


def flat_values(values: Iterable[Value]) -> list[Value]:
    """Return values of arrays only: a packed value is replaced by its parts."""
    return [part for v in values for part in (v.parts if type(v) is PackedValue else (v,))]


def packed_values(avals: Iterable[ShapedArray], values: Iterable[Value]) -> list[Value]:
    """Return values of these types from the values of arrays, the inverse of `flat_values`."""
    each = iter(values)
    return [PackedValue(aval, [next(each) for _ in aval.parts()]) if is_stored(aval) else next(each) for aval in avals]


class SlicedValue(Value):
    """The result of a slice; see `TranslationContext.behind_barriers`."""

    __slots__ = ()


def check_operands(name: str, operands: Sequence[Any]) -> None:
    """Raise TypeError if an operand of an operation is not a value of the program."""
    for i, x in enumerate(operands):
        if not isinstance(x, Value):
            raise TypeError(
                f"ctx.op({name!r}): operand {i} is {x!r} of type {type(x).__name__}; pass the rule's own operands or "
                "values that ctx returns: ctx.full(aval, number) for a number, ctx.constant(array) for an array"
            )


class KnownValue(Value):
    """A value that is known while the program is lowered, so that translations can branch on it.

    Attributes:
        known: the value, a NumPy scalar of the dtype.
    """

    __slots__ = ("known",)

    def __init__(self, value: Value, known: Any) -> None:
        super().__init__(value.name, value.aval, value.origins)
        self.known = known


def element_text(x: Any) -> str:
    """Return one element as MLIR text; floats are written as their bits, which is exact."""
    dtype = x.dtype
    if dtype == np.bool_:
        return "true" if x else "false"
    name = dtype.name
    if dtype.kind == "c":
        return f"({_bits(x.real)}, {_bits(x.imag)})"
    if name.startswith(("int", "uint")):
        return str(int(x))
    return _bits(x)


def _bits(x: Any) -> str:
    raw = x.tobytes()
    return f"0x{int.from_bytes(raw, 'little'):0{2 * len(raw)}X}"
