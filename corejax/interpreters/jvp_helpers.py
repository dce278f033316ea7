"""Helpers that register JVP rules: `defjvp` and its kin, one function for each operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.interpreters.differentiability import checked_rules, wrong_count
from corejax.interpreters.jvp import add_tangents, zeros_like
from corejax.primitive import Primitive
from corejax.rules import jvp_rules, transpose_rules

__corejax_registers_for_caller__ = True


def defjvp(primitive: Primitive, *rules: Callable[..., Any] | None) -> None:
    """Register a JVP rule given one function for each operand.

    Args:
        primitive: a primitive with one result.
        rules: `rule(tangent, *primals, **params) -> tangent of the result`; None where the derivative is zero,
            `nondifferentiable(reason)` where there is none.

    Raises:
        TypeError: the primitive has several results, something is not a rule, or there are more or fewer rules than
            operands; where their number is not known before the primitive is applied, the rule raises.
    """
    refused = checked_rules("defjvp", primitive, rules)
    count = len(rules)
    only = rules[0] if count == 1 else None
    if only is not None:

        def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
            # Reached with a nonzero tangent only, so there is nothing to choose.
            if len(primals) != 1:
                raise wrong_count("defjvp", primitive, 1, len(primals))
            return primitive.bind(*primals, **params), only(*tangents, *primals, **params)

    else:

        def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
            if len(primals) != count:
                raise wrong_count("defjvp", primitive, count, len(primals))
            out = primitive.bind(*primals, **params)
            tangent = None
            for rule, t in zip(rules, tangents, strict=True):
                if t is not None and rule is not None:
                    part = rule(t, *primals, **params)
                    tangent = part if tangent is None else add_tangents(tangent, part)
            return out, tangent

    _register_by_operand(primitive, jvp, rules, refused)


def defjvp_with_result(primitive: Primitive, *rules: Callable[..., Any] | None) -> None:
    """As `defjvp`; each rule gets the result too: `rule(tangent, out, *primals, **params)`."""
    refused = checked_rules("defjvp_with_result", primitive, rules)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        if len(primals) != len(rules):
            raise wrong_count("defjvp_with_result", primitive, len(rules), len(primals))
        out = primitive.bind(*primals, **params)
        tangent = None
        for rule, t in zip(rules, tangents, strict=True):
            if t is not None and rule is not None:
                part = rule(t, out, *primals, **params)
                tangent = part if tangent is None else add_tangents(tangent, part)
        return out, tangent

    _register_by_operand(primitive, jvp, rules, refused)


def _register_by_operand(primitive: Primitive, jvp: Any, rules: Sequence[Any], refused: dict[int, str]) -> None:
    jvp.__name__ = f"{primitive.name}_jvp"
    flags: dict[str, Any] = {"nondifferentiable": refused} if refused else {}
    jvp_rules.register(primitive, _as_written(jvp, rules), symbolic_zeros=True, **flags)


def deflinear(primitive: Primitive, transpose: Callable[..., Any]) -> None:
    """Register the JVP and transpose rules of a primitive that is linear in all of its operands.

    Args:
        primitive: a primitive with one result.
        transpose: `transpose(ct, *primals_in, **params) -> [ct or None]`.
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        # Reached with a nonzero tangent only.
        real = [zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        return primitive.bind(*primals, **params), primitive.bind(*real, **params)

    jvp.__name__ = f"{primitive.name}_jvp"
    jvp_rules.register(primitive, _as_written(jvp, (transpose,)), symbolic_zeros=True)
    transpose_rules.register(primitive, transpose)


def defzero(primitive: Primitive) -> None:
    """Register the JVP rule of a primitive whose derivative is zero everywhere (comparisons, rounding)."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, [None] * len(out) if primitive.multiple_results else None

    jvp.__name__ = f"{primitive.name}_jvp"
    jvp_rules.register(primitive, _as_written(jvp, ()), symbolic_zeros=True)


def _as_written(fn: Any, rules: Sequence[Any]) -> Any:
    """Give a rule made by a helper the place where its author wrote it, so that provenance points there."""
    from corejax.provenance import Provenance

    written = next((r for r in rules if getattr(r, "__code__", None) is not None), None)
    place = Provenance.of(written) if written is not None else Provenance.of_caller()
    fn.__module__ = place.module
    fn.__provenance__ = place
    return fn
