"""Types, values and numbers as MLIR writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray
from corejax.extend.devices import bytes_text
from corejax.extend.messages import clears_cache
from corejax.extend.types import SymbolicDim
from corejax_xla_backend._element_types import ELEMENT_TYPES

_ADDRESSABLE = 1 << 48  # bytes; XLA's sums of a program's sizes would overflow for larger values
_types: dict[ShapedArray, str] = {}
clears_cache(_types.clear)


def element_type(dtype: Any) -> str:
    """MLIR's name of a NumPy dtype (StableHLO specification, "Types").

    Raises:
        TypeError: StableHLO has no such type.
    """
    name = np.dtype(dtype).name
    try:
        return ELEMENT_TYPES[name]
    except KeyError:
        raise TypeError(f"dtype {name} has no StableHLO element type") from None


def tensor_type(aval: ShapedArray) -> str:
    """MLIR's tensor type of an aval: `tensor<3x4xf32>`."""
    text = _types.get(aval)
    if text is None:
        if aval.nbytes > _ADDRESSABLE:
            takes = f"an array of shape {aval.shape} and dtype {aval.dtype.name} takes {bytes_text(aval.nbytes)}"
            raise MemoryError(f"{takes}, which no program addresses")
        dims = "".join(f"{d}x" for d in aval.shape)
        text = f"tensor<{dims}{element_type(aval.dtype)}>"
        if not any(isinstance(d, SymbolicDim) for d in aval.shape):  # those are of one export
            _types[aval] = text
    return text


# Bits of `Value.origins` beside those of arguments.
OWN = 1
KNOWN_NAN = 2


class Value:
    """A value in a StableHLO program.

    Attributes:
        name: its SSA name, `%12`.
        aval: its type; the weak type has no meaning here.
        origins: what it is computed from: a bit for each argument of the function and of the regions around, one,
            `OWN`, for what is made without any, and one, `KNOWN_NAN`, for constants that are NaN.
    """

    __slots__ = ("aval", "name", "origins")

    known: Any = None  # of `KnownValue`

    def __init__(self, name: str, aval: ShapedArray, origins: int = 0) -> None:
        self.name = name
        self.aval = aval
        self.origins = origins

    def __repr__(self) -> str:
        return f"{self.name}: {tensor_type(self.aval)}"


class SlicedValue(Value):
    """The result of a slice: see `TranslationContext.apart`."""

    __slots__ = ()


def check_operands(name: str, operands: Sequence[Any]) -> None:
    """Refuse what is no value of a program among the operands of an operation.

    Raises:
        TypeError: one is none.
    """
    for i, x in enumerate(operands):
        if not isinstance(x, Value):
            raise TypeError(
                f"ctx.op({name!r}): operand {i} is {x!r} of type {type(x).__name__}; operands are what the rule is "
                "given and what ctx makes: ctx.full(aval, number) for a number, ctx.constant(array) for an array"
            )


class KnownValue(Value):
    """A value that is known while the program is written: translations may choose by it.

    Attributes:
        known: the value, a scalar of NumPy's of the dtype.
    """

    __slots__ = ("known",)

    def __init__(self, value: Value, known: Any) -> None:
        super().__init__(value.name, value.aval, value.origins)
        self.known = known


def element_text(x: Any) -> str:
    """One element as MLIR text, exactly: floats as their bits."""
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
