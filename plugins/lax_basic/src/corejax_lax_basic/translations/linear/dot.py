"""StableHLO of `dot_general`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic._base.small_ints import SMALL_INT_BYTES
from corejax_lax_basic.linear.dot import dot_general_p
from corejax_lax_basic.linear.precision import DotAlgorithm, DotAlgorithmPreset

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

# XLA for CPUs refuses to widen products of the first dtype, and adds up products of the second in its own two bits.
_WIDENED = frozenset(map(dtypes.dtype, ("float4_e2m1fn", "float8_e8m0fnu")))


def precision_text(precision: Any) -> str:
    """Return StableHLO's precision of both operands; the default one for algorithms."""
    pair = precision if type(precision) is tuple else (None, None)
    words = [p.name if p is not None else "DEFAULT" for p in pair]
    return ", ".join(f"#stablehlo<precision {word}>" for word in words)


def _stored(dtype: Any, allowed: Sequence[Any] | None) -> Any:
    return dtype if allowed is None or dtype in allowed else allowed[0]


def _types(precision: Any, lhs: Any, rhs: Any, out: Any) -> tuple[Any, Any, Any]:
    """Return the dtypes that operands are converted to, and the dtype of sums."""
    if isinstance(precision, DotAlgorithm):
        return precision[:3]
    if isinstance(precision, DotAlgorithmPreset):
        sums = precision.accumulation_type
        return (
            _stored(lhs, precision.supported_lhs_types),
            _stored(rhs, precision.supported_rhs_types),
            out if sums is None else sums,
        )
    if lhs in SMALL_INT_BYTES or rhs in SMALL_INT_BYTES:  # XLA has few products of these dtypes
        wide = np.dtype(np.int32) if out in SMALL_INT_BYTES else np.dtype(np.float32) if out in _WIDENED else out
        return wide, wide, wide
    if not {lhs, rhs}.isdisjoint(_WIDENED) and not lhs == rhs == out:
        wide = out if out.itemsize >= 4 else np.dtype(np.float32)
        return wide, wide, wide
    if lhs == rhs or (_is_float8(lhs) and _is_float8(rhs)):
        return lhs, rhs, out
    return out, out, out  # XLA has few mixed products


def _is_float8(dtype: Any) -> bool:
    return dtypes.is_float(dtype) and dtype.itemsize == 1


def _algorithm(precision: Any, lhs: Any, rhs: Any, platform: str) -> str:
    """Return the attribute of an algorithm, or an empty string; XLA for CPUs has few, and needs no others."""
    if isinstance(precision, DotAlgorithm):
        types, counts = [_mlir_name(t) for t in precision[:3]], precision[3:6]
        imprecise = precision.allow_imprecise_accumulation
    elif isinstance(precision, DotAlgorithmPreset) and precision is not DotAlgorithmPreset.DEFAULT:
        if platform == "cpu" and not precision.on_cpu:
            return ""
        words = precision.name.split("_")
        if words[0] == "ANY":
            types = [_mlir_name(lhs), _mlir_name(rhs), "f32"]
        else:
            types = [word.lower() for word in words[:3]]
        counts = (1, 1, int(words[-1][1:]) if words[-1].startswith("X") else 1)
        imprecise = precision is DotAlgorithmPreset.ANY_F8_ANY_F8_F32_FAST_ACCUM
    else:
        return ""
    return (
        f", algorithm = #stablehlo.dot_algorithm<lhs_precision_type = {types[0]}, rhs_precision_type = {types[1]}, "
        f"accumulation_type = {types[2]}, lhs_component_count = {counts[0]}, rhs_component_count = {counts[1]}, "
        f"num_primitive_operations = {counts[2]}, allow_imprecise_accumulation = {str(imprecise).lower()}>"
    )


def _mlir_name(dtype: Any) -> str:
    name = dtypes.dtype(dtype).name
    short = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"}
    return short.get(name) or "f8" + name.removeprefix("float8_").upper()


@xla_translations.register(dot_general_p)
def dot_general(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any,
    precision: Any = None,
) -> Any:
    """Lower to `dot_general`, with sums in the preferred element type, or as the algorithm defines."""
    params = {"dimension_numbers": dimension_numbers, "preferred_element_type": preferred_element_type}
    out = dot_general_p.abstract(tuple(in_avals), params)[0]
    lhs, rhs = (aval.dtype for aval in in_avals)
    lhs, rhs, sums = _types(precision, lhs, rhs, preferred_element_type)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = ", ".join(
        f"{name} = {list(axes)}"
        for name, axes in (
            ("lhs_batching_dimensions", lhs_batch),
            ("rhs_batching_dimensions", rhs_batch),
            ("lhs_contracting_dimensions", lhs_contract),
            ("rhs_contracting_dimensions", rhs_contract),
        )
        if axes
    )
    attrs = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, precision_config = [{precision_text(precision)}]"
    attrs += _algorithm(precision, lhs, rhs, ctx.platform)
    operands = [ctx.convert(x, dtype) for x, dtype in zip(in_vals, (lhs, rhs), strict=True)]
    product = ctx.op("dot_general", *operands, out=out.update(dtype=sums), attrs=attrs)
    return ctx.convert(product, preferred_element_type)
