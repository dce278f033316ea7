"""The attributes of StableHLO's `custom_call`, for kernels of XLA's typed foreign function interface (FFI)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray

_TYPED = 4  # StableHLO's API version of typed handlers
PARTITIONED = '"corejax.partitioned"'  # the target of `partitioned_calls`
BATCHED = "mhlo.frontend_attributes"  # XLA's partitioner reads the number of batch axes from this attribute


def attributes_of(
    target: str,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    attributes: Mapping[str, Any],
    has_side_effect: bool,
    column_major: int | None = None,
    in_place: Sequence[tuple[int, int]] = (),
    batch_dims: int = 0,
) -> str:
    """Return the body of the operation's attribute dictionary.

    Args:
        target: the kernel's name.
        operands: types of the operands.
        results: types of the results.
        attributes: the kernel's attributes.
        has_side_effect: whether the compiler keeps the call if its results are not used.
        column_major: operands and results of this rank have their last two axes in column-major order; all others are
            in row-major order.
        in_place: pairs of an operand and the result that takes its memory.
        batch_dims: number of leading axes of all operands and results over which the kernel computes each element
            independently; the target is registered as `batch_partitionable`.
    """
    entries = {
        "call_target_name": quoted(target),
        "api_version": f"{_TYPED} : i32",
        "has_side_effect": "true" if has_side_effect else "false",
        "backend_config": "{" + ", ".join(f"{name} = {literal(value)}" for name, value in attributes.items()) + "}",
        "operand_layouts": _layouts(operands, column_major),
        "result_layouts": _layouts(results, column_major),
    }
    if in_place:
        entries["output_operand_aliases"] = f"[{', '.join(_alias(*pair, len(results)) for pair in in_place)}]"
    if batch_dims:
        entries["sdy.sharding_rule"] = batch_rule(operands, results, batch_dims)
        entries[BATCHED] = f'{{num_batch_dims = "{batch_dims}"}}'
    return ", ".join(f"{name} = {value}" for name, value in entries.items())


def is_partitioned(attributes: str) -> bool:
    """Return whether XLA's partitioner can partition a call with these attributes."""
    return BATCHED in attributes or PARTITIONED in attributes


def check_batch(target: str, avals: Sequence[ShapedArray], batch_dims: int) -> None:
    """Raise ValueError if the operands and results do not share `batch_dims` leading axes."""
    shared = len({aval.shape[:batch_dims] for aval in avals}) == 1 and all(a.ndim >= batch_dims for a in avals)
    if batch_dims < 0 or (batch_dims and not shared):
        shown = ", ".join(aval.str_short() for aval in avals)
        raise ValueError(
            f"custom_call of {target!r}: batch_dims={batch_dims}, but the operands and results, {shown}, do not share "
            "that many leading axes"
        )


def batch_rule(operands: Sequence[ShapedArray], results: Sequence[ShapedArray], batch_dims: int) -> str:
    """Return Shardy's rule of an operation that may be split along its leading batch axes only."""
    sides = [
        [(aval, (*range(batch_dims), *[None] * (aval.ndim - batch_dims))) for aval in x] for x in (operands, results)
    ]
    return factors_rule((operands or results)[0].shape[:batch_dims], *sides)


def factors_rule(
    known: Sequence[int],
    operands: Iterable[tuple[ShapedArray, Sequence[int | None]]],
    results: Iterable[tuple[ShapedArray, Sequence[int | None]]],
) -> str:
    """Return Shardy's rule of an operation that splits dimensions with a common factor alike, and replicates others.

    Args:
        known: sizes of the factors.
        operands: type of each operand, and for each of its dimensions the factor's number, or None.
        results: the same for the results.
    """
    sizes = list(known)

    def dimensions(aval: ShapedArray, numbers: Sequence[int | None]) -> str:
        factors = []
        for size, number in zip(aval.shape, numbers, strict=True):
            factors.append((len(sizes) if number is None else number,))
            if number is None:
                sizes.append(size)
        return dimension_factors(factors)

    sides = [", ".join([dimensions(*each) for each in side]) for side in (operands, results)]
    return sharding_rule(sides, sizes, range(len(known), len(sizes)))


def sharding_rule(
    sides: Sequence[str],
    sizes: Sequence[int],
    need_replication: Sequence[int] = (),
    reduction: Sequence[int] = (),
    permutation: Sequence[int] = (),
) -> str:
    """Return Shardy's attribute from the factors of operands and results, as text, and the factors' sizes and kinds."""
    listed = ", ".join(f"{factor(i)}={size}" for i, size in enumerate(sizes))
    kinds = {"reduction": reduction, "need_replication": need_replication, "permutation": permutation}
    kinds_text = "".join(
        f" {name}={{{', '.join(factor(i) for i in sorted(kind))}}}" for name, kind in kinds.items() if len(kind)
    )
    return f"#sdy.op_sharding_rule<({sides[0]})->({sides[1]}) {{{listed}}}{kinds_text}, custom>"


def dimension_factors(dimensions: Sequence[Sequence[int]]) -> str:
    """Return the text of the factors of each dimension of an operand or result: `[i, jk]`."""
    return "[" + ", ".join("".join(map(factor, factors)) for factors in dimensions) + "]"


def factor(number: int) -> str:
    """Return Shardy's name of a factor: `i` to `z`, then `z_1`, `z_2`."""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"


def quoted(text: str) -> str:
    """Return an MLIR string; bytes that are not printable ASCII are escaped."""
    return quoted_bytes(text.encode())


def quoted_bytes(content: bytes) -> str:
    """Return an MLIR string of bytes."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in content)
    return f'"{"".join(plain)}"'


def literal(value: Any) -> str:
    """Return the text of an attribute: Python ints are i64 and floats f64, NumPy's numbers keep their dtype.

    Raises:
        TypeError: no attribute has the value's type.
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
        "an attribute of a custom call must be a number, boolean, string or one-dimensional array of signed integers "
        f"or floats, got {value!r}"
    )


def _bare(x: Any) -> str:
    """Return a number's text without its type; floats are written as their bits, which is exact."""
    if x.dtype.kind != "f":
        return str(int(x))
    raw = x.tobytes()
    return f"0x{int.from_bytes(raw, 'little'):0{2 * len(raw)}X}"


def _element(dtype: np.dtype[Any]) -> str:
    return f"{'ui' if dtype.kind == 'u' else dtype.kind}{8 * dtype.itemsize}"


def _layouts(avals: Sequence[ShapedArray], column_major: int | None) -> str:
    """Return the layouts: for each value its axes, the fastest-varying one first."""
    layouts = []
    for aval in avals:
        axes = list(reversed(range(aval.ndim)))
        if aval.ndim == column_major:
            axes[:2] = axes[1], axes[0]
        order = ", ".join(str(axis) for axis in axes)
        layouts.append(f"dense<{f'[{order}]' if order else ''}> : tensor<{aval.ndim}xindex>")
    return f"[{', '.join(layouts)}]"


def _alias(operand: int, result: int, results: int) -> str:
    place = str(result) if results > 1 else ""
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{place}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
    )
