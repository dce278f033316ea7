"""Attributes of StableHLO's `custom_call`, for kernels of XLA's typed foreign function interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray

_TYPED = 4  # StableHLO's API version of typed handlers


def attributes_of(
    target: str,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    attributes: Mapping[str, Any],
    has_side_effect: bool,
) -> str:
    """The body of the operation's attribute dictionary; operands and results are laid out in row-major order."""
    written = {
        "call_target_name": quoted(target),
        "api_version": f"{_TYPED} : i32",
        "has_side_effect": "true" if has_side_effect else "false",
        "backend_config": "{" + ", ".join(f"{name} = {literal(value)}" for name, value in attributes.items()) + "}",
        "operand_layouts": _row_major(operands),
        "result_layouts": _row_major(results),
    }
    return ", ".join(f"{name} = {value}" for name, value in written.items())


def quoted(text: str) -> str:
    """An MLIR string: what is not printable ASCII is escaped by its bytes."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())
    return f'"{"".join(plain)}"'


def literal(value: Any) -> str:
    """An attribute: Python ints are i64 and floats f64, NumPy's numbers keep their dtype.

    Raises:
        TypeError: there is no such attribute.
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "if":
        items = ", ".join(_bare(x) for x in value)
        return f"array<{_element(value.dtype)}{': ' if items else ''}{items}>"
    if isinstance(value, int | float):
        value = np.asarray(value)[()]
    if isinstance(value, np.generic) and value.dtype.kind in "iuf":
        return f"{_bare(value)} : {_element(value.dtype)}"
    raise TypeError(
        "an attribute of a custom call is a number, boolean, string or one-dimensional array of signed integers "
        f"or floats, got {value!r}"
    )


def _bare(x: Any) -> str:
    if x.dtype.kind != "f":
        return str(int(x))
    raw = x.tobytes()  # as its bits, for exactness
    return f"0x{int.from_bytes(raw, 'little'):0{2 * len(raw)}X}"


def _element(dtype: np.dtype[Any]) -> str:
    return f"{'ui' if dtype.kind == 'u' else dtype.kind}{8 * dtype.itemsize}"


def _row_major(avals: Sequence[ShapedArray]) -> str:
    """Layouts: axes from the one that varies fastest."""
    orders = [", ".join(str(axis) for axis in reversed(range(a.ndim))) for a in avals]
    layouts = [
        f"dense<{f'[{order}]' if order else ''}> : tensor<{a.ndim}xindex>"
        for order, a in zip(orders, avals, strict=True)
    ]
    return f"[{', '.join(layouts)}]"
