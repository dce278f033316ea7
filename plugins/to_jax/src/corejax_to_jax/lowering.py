"""Lower `corejax_call`: the StableHLO that corejax writes becomes a function of JAX's module."""

from __future__ import annotations

import functools
from typing import Any

from jax.interpreters import mlir

from corejax_to_jax.call import Program, corejax_call_p
from corejax_xla_backend.hlo import module_text

# A lowering for each platform, so that `jax.export` can write a module for several.
PLATFORMS = ("cpu", "cuda")


def _lower(platform: str, ctx: Any, *vals: Any, program: Program) -> list[Any]:
    module = ctx.module_context
    # Host callbacks are addressed by their index in the executable's list, which is JAX's.
    text = module_text(program.closed, platform, program.name, module.host_callbacks)
    parsed = mlir.ir.Module.parse(text, context=module.context)
    symbol = mlir.merge_mlir_modules(module.module, program.name, parsed, dst_symtab=module.symbol_table)
    call = mlir.ir.Operation.create(
        "func.call",
        results=module.symbol_table[symbol].type.results,
        operands=list(vals),
        attributes={"callee": mlir.ir.FlatSymbolRefAttr.get(symbol)},
    )
    return list(call.results)


for _platform in PLATFORMS:
    mlir.register_lowering(corejax_call_p, functools.partial(_lower, _platform), platform=_platform, cacheable=True)
