"""Attributes of StableHLO's `custom_call`, for kernels of XLA's typed foreign function interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray

_TYPED = 4  # StableHLO's API version of typed handlers
PARTITIONED = '"corejax.partitioned"'  # the target of `partitioned_calls`
BATCHED = "mhlo.frontend_attributes"  # where XLA's partitioner looks for the number of batch axes


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
    """The body of the operation's attribute dictionary.

    Args:
        target: the kernel's name.
        operands: types of the operands.
        results: types of the results.
        attributes: what the kernel is given besides.
        has_side_effect: whether the call is kept where nobody uses its results.
        column_major: how many axes an operand or result has whose last two are laid out as in Fortran; everything else
            is in row-major order.
        in_place: pairs of an operand and the result that has its memory.
        batch_dims: how many leading axes all operands and results have that the kernel computes element by element;
            the target is registered as `batch_partitionable`.
    """
    written = {
        "call_target_name": quoted(target),
        "api_version": f"{_TYPED} : i32",
        "has_side_effect": "true" if has_side_effect else "false",
        "backend_config": "{" + ", ".join(f"{name} = {literal(value)}" for name, value in attributes.items()) + "}",
        "operand_layouts": _layouts(operands, column_major),
        "result_layouts": _layouts(results, column_major),
    }
    if in_place:
        written["output_operand_aliases"] = f"[{', '.join(_alias(*pair, len(results)) for pair in in_place)}]"
    if batch_dims:
        written["sdy.sharding_rule"] = batch_rule(operands, results, batch_dims)
        written[BATCHED] = f'{{num_batch_dims = "{batch_dims}"}}'
    return ", ".join(f"{name} = {value}" for name, value in written.items())


def is_partitioned(attributes: str) -> bool:
    """Whether XLA's partitioner knows how to partition the call with these attributes."""
    return BATCHED in attributes or PARTITIONED in attributes


def check_batch(target: str, avals: Sequence[ShapedArray], batch_dims: int) -> None:
    """Refuse leading axes that are not the same of all operands and results.

    Raises:
        ValueError: with their types.
    """
    shared = len({aval.shape[:batch_dims] for aval in avals}) == 1 and all(a.ndim >= batch_dims for a in avals)
    if batch_dims < 0 or (batch_dims and not shared):
        shown = ", ".join(aval.str_short() for aval in avals)
        raise ValueError(
            f"custom_call of {target!r}: batch_dims={batch_dims} are leading axes that all operands and results have, "
            f"and these are {shown}"
        )


def batch_rule(operands: Sequence[ShapedArray], results: Sequence[ShapedArray], batch_dims: int) -> str:
    """Shardy's rule of an operation whose leading axes are a batch, and whose other axes are kept whole."""
    sides = [
        [(aval, (*range(batch_dims), *[None] * (aval.ndim - batch_dims))) for aval in x] for x in (operands, results)
    ]
    return factors_rule((operands or results)[0].shape[:batch_dims], *sides)


def factors_rule(
    known: Sequence[int],
    operands: Iterable[tuple[ShapedArray, Sequence[int | None]]],
    results: Iterable[tuple[ShapedArray, Sequence[int | None]]],
) -> str:
    """Shardy's rule of an operation that dimensions of a factor are split alike in, and all others kept whole.

    Args:
        known: sizes of the factors.
        operands, results: the type of each, and for each of its dimensions the number of its factor, None without one.
    """
    sizes = list(known)

    def dimensions(aval: ShapedArray, numbers: Sequence[int | None]) -> str:
        found = []
        for size, number in zip(aval.shape, numbers, strict=True):
            found.append((len(sizes) if number is None else number,))
            if number is None:
                sizes.append(size)
        return dimension_factors(found)

    sides = [", ".join([dimensions(*each) for each in side]) for side in (operands, results)]
    return sharding_rule(sides, sizes, range(len(known), len(sizes)))


def sharding_rule(
    sides: Sequence[str],
    sizes: Sequence[int],
    need_replication: Sequence[int] = (),
    reduction: Sequence[int] = (),
    permutation: Sequence[int] = (),
) -> str:
    """The attribute of Shardy: the factors of operands and results as text, the factors' sizes, and their kinds."""
    listed = ", ".join(f"{factor(i)}={size}" for i, size in enumerate(sizes))
    kinds = {"reduction": reduction, "need_replication": need_replication, "permutation": permutation}
    said = "".join(
        f" {name}={{{', '.join(factor(i) for i in sorted(kind))}}}" for name, kind in kinds.items() if len(kind)
    )
    return f"#sdy.op_sharding_rule<({sides[0]})->({sides[1]}) {{{listed}}}{said}, custom>"


def dimension_factors(dimensions: Sequence[Sequence[int]]) -> str:
    """Text of the factors of each dimension of an operand or result: `[i, jk]`."""
    return "[" + ", ".join("".join(map(factor, factors)) for factors in dimensions) + "]"


def factor(number: int) -> str:
    """Shardy's name of a factor: `i` to `z`, then `z_1`, `z_2`."""
    return chr(ord("i") + number) if number < 18 else f"z_{number - 17}"


def quoted(text: str) -> str:
    """An MLIR string: what is not printable ASCII is escaped by its bytes."""
    return quoted_bytes(text.encode())


def quoted_bytes(content: bytes) -> str:
    """The same of bytes."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in content)
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


def _layouts(avals: Sequence[ShapedArray], column_major: int | None) -> str:
    """Layouts: axes from the one that varies fastest."""
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
