"""Translation of `composite` to the StableHLO operation `composite`, with its decomposition as a function."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import ClosedJaxpr, dtypes, xla_translations
from corejax_control_flow.custom.composite import composite_p

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


@xla_translations.register(composite_p)
def composite_translation(
    ctx: TranslationContext,
    in_avals: Any,
    in_vals: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    name: str,
    version: int,
    attributes: tuple[tuple[str, Any], ...],
) -> list[Any]:
    """Translate to `composite`, with the decomposition as a private function."""
    symbol = ctx.function(jaxpr, name)
    listed = ", ".join(f"{_quoted(key)} = {_text(value)}" for key, value in attributes)
    attrs = (
        f"name = {_quoted(name)}, decomposition = @{symbol}, composite_attributes = {{{listed}}}, "
        f"version = {version} : i32"
    )
    outs: list[Any] = ctx.op("composite", *in_vals, out=list(jaxpr.out_avals), attrs=attrs)
    return outs


def _quoted(text: str) -> str:
    return json.dumps(text)


def _text(value: Any) -> str:
    """Format an attribute in MLIR's syntax."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"0x{np.float64(value).view(np.uint64):016X} : f64"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, np.dtype):
        return _type_name(value)
    if len(value) == 3 and isinstance(value[0], np.dtype) and isinstance(value[1], tuple):
        return _dense(*value)
    return f"[{', '.join(map(_text, value))}]"


def _type_name(dtype: Any) -> str:
    """Format an element type: `i1`, `i32`, `ui8`, `f32`, `bf16`."""
    short = dtypes.short_name(dtype)
    return {"bool": "i1"}.get(short) or (f"u{short.replace('u', 'i', 1)}" if short.startswith("u") else short)


def _dense(dtype: Any, shape: tuple[int, ...], elements: tuple[Any, ...]) -> str:
    kind = "x".join([*map(str, shape), _type_name(dtype)])
    values = np.array(elements, dtype).reshape(shape).tolist()
    return f"dense<{json.dumps(values)}> : tensor<{kind}>"
