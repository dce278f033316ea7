"""The derived translation of primitives that have a decomposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Derivation, Primitive, ShapedArray, decomposed, xla_translations
from corejax_xla_backend._lowering.context import TranslationContext
from corejax_xla_backend._lowering.types import Value


def _from_decomposition(primitive: Primitive) -> Callable[..., Any] | None:
    """Return the translation rule that lowers a primitive's decomposition; None if it has no decomposition."""
    if primitive.decomposition is None:
        return None
    elementwise = "elementwise" in primitive.tags

    def rule(
        ctx: TranslationContext, in_avals: Sequence[ShapedArray], in_vals: Sequence[Value], /, **params: Any
    ) -> Any:
        body = decomposed(primitive, in_avals, params)
        outs = (ctx.inline_elementwise if elementwise else ctx.inline)(body, in_vals)
        return outs if primitive.multiple_results else outs[0]

    return rule


xla_translations.derivations.append(Derivation("decomposition", _from_decomposition, needs="a decomposition"))
