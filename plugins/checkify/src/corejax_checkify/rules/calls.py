"""Primitives that apply a program once. Most call the checked program in its place, and stay what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import Primitive, find_primitive, inline_closed
from corejax_checkify.interpreter import Checks, checked_jaxpr, checkify_rules


def _calling(primitive: Primitive, param: str) -> Callable[..., Any]:
    def rule(checks: Checks, *operands: Any, **params: Any) -> list[Any]:
        return checks.call(primitive, operands, params, param)

    return rule


def _jitting(primitive: Primitive, param: str) -> Callable[..., Any]:
    def rule(checks: Checks, *operands: Any, name: str, **params: Any) -> list[Any]:
        return checks.call(primitive, operands, {"name": f"checkify({name})", **params}, param)

    return rule


def _inlining(primitive: Primitive, param: str) -> Callable[..., Any]:
    """Of primitives whose results are fixed by more than the program, which therefore cannot give an error as well."""

    def rule(checks: Checks, *operands: Any, **params: Any) -> list[Any]:
        program, error_type = checked_jaxpr(params[param], checks.kinds)
        if program is params[param]:
            return list(primitive.bind(*operands, **params))
        return checks.taken(inline_closed(program, operands), error_type)

    return rule


for _name, _param, _rule in (
    ("xla_call", "call_jaxpr", _jitting),
    ("remat2", "jaxpr", _calling),
    ("composite", "jaxpr", _inlining),
    ("remat_opt", "fwd_jaxpr", _inlining),
):
    _primitive = find_primitive(_name)
    if _primitive is not None:
        checkify_rules.register(_primitive, _rule(_primitive, _param))
