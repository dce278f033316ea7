"""StableHLO of `dot_general`."""

from __future__ import annotations

from typing import Any

from corejax.extend import xla_translations
from corejax_lax_basic.linear.dot import dot_general_p


def precision_text(precision: Any) -> str:
    """StableHLO's precision of both operands, from a name or a pair of names."""
    pair = precision if isinstance(precision, tuple) else (precision, precision)
    words = [str(getattr(p, "name", p) or "default").upper() for p in pair]
    return ", ".join(f"#stablehlo<precision {word}>" for word in words)


@xla_translations.register(dot_general_p)
def dot_general(
    ctx: Any, in_avals: Any, in_vals: Any, *, dimension_numbers: Any, preferred_element_type: Any, precision: Any = None
) -> Any:
    """`dot_general`, with sums in the preferred element type."""
    params = {"dimension_numbers": dimension_numbers, "preferred_element_type": preferred_element_type}
    out = dot_general_p.abstract(tuple(in_avals), params)[0]
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
    return ctx.op("dot_general", *in_vals, out=out, attrs=attrs)
