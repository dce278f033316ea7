"""StableHLO of `call_exported`: the artifact's functions become functions of the program around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import ShapedArray, xla_translations
from corejax_xla_backend.export.calling import (
    call_exported_p,
    effectful_call_exported_p,
)


def _translation(ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, exported: Any) -> Any:
    from corejax_xla_backend import _jaxlib  # when a program is lowered

    portable = exported.module_for(ctx.platform)

    def functions(rename: Callable[[str], str]) -> list[str]:
        module = _jaxlib.from_portable(portable)
        texts = _jaxlib.functions_text(module, lambda name: rename(exported.fun_name if name == "main" else name))
        if ctx.platform == "cpu" and any("@lapack_" in text for text in texts):
            _jaxlib.register_lapack()
        return texts

    symbol = ctx.module.spliced(exported, functions)
    kept = [in_vals[i] for i in exported.module_kept_var_idx]
    return ctx.call_symbol(symbol, kept, exported.out_avals)


for _p in (call_exported_p, effectful_call_exported_p):
    xla_translations.register(_p, _translation)
