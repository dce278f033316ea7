"""`jax.interpreters.mlir`: lowering rules of libraries, applied inside corejax's lowering.

A rule built by `lower_fun` is a function that corejax traces and inlines. A rule that emits operations through
jaxlib's MLIR bindings runs in a separate module; the functions of this module are added to the program and called
there.

Libraries register rules when they are imported, so that jaxlib is imported only when a rule runs.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import corejax
from corejax.extend import ShapedArray, stage_closed, xla_translations


@dataclasses.dataclass
class ModuleContext:
    """The module into which a rule emits operations.

    Attributes:
        module: jaxlib's module object.
        platforms: the platforms for which it is compiled.
        call: appends a call of a program: `call(closed, operands) -> values`.
    """

    module: Any
    platforms: tuple[str, ...]
    call: Callable[[Any, Sequence[Any]], list[Any]]

    @property
    def context(self) -> Any:
        """The module's MLIR context."""
        return self.module.context

    @property
    def ip(self) -> Any:
        """The insertion point at which functions are added."""
        from corejax_xla_backend import hlo

        return hlo.ir.InsertionPoint(self.module.body)

    @property
    def symbol_table(self) -> Any:
        """The module's functions by name."""
        from corejax_xla_backend import hlo

        return hlo.ir.SymbolTable(self.module.operation)

    def add_keepalive(self, value: Any) -> None:
        """Accept an object that must live as long as the program; corejax keeps callbacks itself."""


@dataclasses.dataclass
class LoweringRuleContext:
    """The context of a rule that emits MLIR: the module, the primitive, and the types of operands and results."""

    module_context: ModuleContext
    primitive: Any
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]
    platforms: Sequence[str] | None = None
    name_stack: str = ""
    tokens_in: Any = None
    tokens_out: Any = None
    axis_size_env: Any = None
    dim_var_values: Sequence[Any] = ()

    def replace(self, **fields: Any) -> LoweringRuleContext:
        """Return a copy with some fields replaced."""
        return dataclasses.replace(self, **fields)

    def set_tokens_out(self, tokens: Any) -> None:
        """Set the tokens that order effects."""
        self.tokens_out = tokens

    def is_forward_compat(self) -> bool:
        """Return False; programs run in the process that lowers them."""
        return False


class LowerFun:
    """A lowering rule that is a function of arrays."""

    def __init__(self, fun: Callable[..., Any], multiple_results: bool = True) -> None:
        self.fun = fun
        self.multiple_results = multiple_results

    def flat(self, *args: Any, **params: Any) -> list[Any]:
        """Call the function; return a list."""
        out = self.fun(*args, **params)
        return list(out) if self.multiple_results else [out]

    def __call__(self, ctx: LoweringRuleContext, *values: Any, **params: Any) -> list[Any]:
        """Emit the function's operations, when called from a rule that emits MLIR."""
        from corejax_as_jax.mlir_values import ir_constant
        from corejax_xla_backend import hlo

        arguments = [corejax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_in]
        lowered = corejax.jit(lambda *args: self.flat(*args, **params)).lower(*arguments)
        constants = [ir_constant(x) for x in lowered.consts]
        return hlo.call_lowered(ctx.module_context.module, lowered, [*constants, *values])


def register_lowering(
    primitive: Any,
    rule: Callable[..., Any],
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> Callable[..., Any]:
    """Register a lowering rule: made by `lower_fun`, or `(ctx, *values, **params) -> values` that writes MLIR."""
    translation = _traced(primitive, rule) if isinstance(rule, LowerFun) else _written(primitive, rule)
    for name in _PLATFORMS.get(platform, (platform,)):
        flags = {} if name is None else {"platform": name}
        earlier = bool(xla_translations.registered(primitive, name))
        xla_translations.register(primitive, translation, override=earlier, **flags)
    return rule


_PLATFORMS: dict[str | None, tuple[str | None, ...]] = {"gpu": ("cuda",)}


def _traced(primitive: Any, rule: LowerFun) -> Callable[..., Any]:
    def translation(ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], **params: Any) -> Any:
        outs = ctx.inline(stage_closed(lambda *args: rule.flat(*args, **params), in_avals), in_vals)
        return outs if primitive.multiple_results else outs[0]

    return translation


def _written(primitive: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    def translation(ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], **params: Any) -> Any:
        from corejax_as_jax.mlir_values import flatten_ir_values
        from corejax_xla_backend import hlo

        out_avals = primitive.abstract(tuple(in_avals), params)

        def body(module: Any, *values: Any) -> list[Any]:
            inside = ModuleContext(module, (ctx.platform,), functools.partial(hlo.call_program, ctx, module))
            rule_ctx = LoweringRuleContext(inside, primitive, tuple(in_avals), tuple(out_avals))
            return flatten_ir_values(rule(rule_ctx, *values, **params))

        outs = hlo.call_written(ctx, primitive.name, in_vals, out_avals, body)
        return outs if primitive.multiple_results else outs[0]

    return translation


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool = False,
    **options: Any,
) -> tuple[list[Any], Any, None]:
    """Append a call of a Python function on the host.

    Args:
        ctx: the context of the rule.
        callback: function of the operands' values; it returns a sequence of results.
        token: orders effects; returned as it is.
        operands: values of MLIR.
        operand_avals: their types.
        result_avals: types of the results.
        has_side_effect: whether the call is kept if no result is used.
        options: JAX's other options, which have no effect.

    Returns:
        The results, the token, and None where JAX has an object that keeps the callback alive.
    """
    call = corejax.experimental.io_callback if has_side_effect else corejax.pure_callback
    results = [corejax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in result_avals]
    program = stage_closed(lambda *xs: list(call(lambda *ys: list(callback(*ys)), results, *xs)), tuple(operand_avals))
    return ctx.module_context.call(program, operands), token, None
