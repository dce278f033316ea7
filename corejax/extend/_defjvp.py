"""Helpers that register JVP rules given one function for each operand: `defjvp` and others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.base.provenance import Provenance
from corejax.core.avals import Operands
from corejax.core.primitive import Primitive
from corejax.interpreters.differentiability import nondifferentiable
from corejax.interpreters.jvp import add_tangents, zeros_like
from corejax.messages.marks import mark
from corejax.rules import RuleFn, abstract_eval_rules, impl_rules, jvp_rules, transpose_rules

__corejax_registers_for_caller__ = True


def defjvp(primitive: Primitive, *rules: RuleFn | None) -> None:
    """Register a JVP rule given one function for each operand.

    Args:
        primitive: a primitive with one result.
        rules: `rule(tangent, *primals, **params) -> tangent of the result` for each operand; None if the derivative
            is zero, `nondifferentiable(reason)` if it does not exist.

    Raises:
        TypeError: the primitive has several results, a rule is not callable, or the number of rules is not the number
            of operands. If that number is not known yet, the registered rule raises.
    """
    _register_by_operand("defjvp", primitive, rules, with_result=False)


def defjvp_with_result(primitive: Primitive, *rules: RuleFn | None) -> None:
    """Do as `defjvp`, with rules that take the result as well: `rule(tangent, out, *primals, **params)`."""
    _register_by_operand("defjvp_with_result", primitive, rules, with_result=True)


def _register_by_operand(helper: str, primitive: Primitive, rules: Sequence[Any], *, with_result: bool) -> None:
    """Register the rule that sums the contributions of the operands."""
    refused = _checked_rules(helper, primitive, rules)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        if len(primals) != len(rules):
            raise _wrong_count(helper, primitive, len(rules), len(primals))
        out = primitive.bind(*primals, **params)
        values = (out, *primals) if with_result else primals
        tangent = None
        for rule, t in zip(rules, tangents, strict=True):
            if t is not None and rule is not None:
                tangent = add_tangents(tangent, rule(t, *values, **params))
        return out, tangent

    _register(primitive, jvp, rules, **({"nondifferentiable": refused} if refused else {}))


def deflinear(primitive: Primitive, transpose: Callable[..., object]) -> None:
    """Register the JVP and transpose rules of a primitive that is linear in its operands `linear_in`; in all, if empty.

    Args:
        primitive: a primitive that is not differentiated in its other operands; that raises TypeError.
        transpose: `transpose(ct, *primals_in, **params) -> [ct or None]`.
    """

    def jvp(primals: Operands, tangents: Operands, /, **params: object) -> tuple[Any, Any]:
        linear, dots = primitive.linear_in or range(len(primals)), list(tangents)
        for i, (x, t) in enumerate(zip(primals, tangents, strict=True)):
            if t is not None and i not in linear:
                raise TypeError(f"{primitive.name}: operand {i} is not in linear_in; add it, or write a JVP rule")
            dots[i] = t if t is not None else zeros_like(x) if i in linear else x
        return primitive.bind(*primals, **params), primitive.bind(*dots, **params)

    _register(primitive, jvp, (transpose,))
    transpose_rules.register(primitive, transpose)


def defzero(primitive: Primitive) -> None:
    """Register the JVP rule of a primitive with a zero derivative everywhere (comparisons, rounding)."""

    def jvp(primals: Operands, tangents: Operands, /, **params: object) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, [None] * len(out) if primitive.multiple_results else None

    _register(primitive, jvp, ())


def _register(primitive: Primitive, jvp: Any, rules: Sequence[object], **flags: Any) -> None:
    """Register a rule that a helper built; its provenance is that of the first function the author passed."""
    written = next((r for r in rules if getattr(r, "__code__", None) is not None), None)
    place = Provenance.of(written) if written is not None else Provenance.of_caller()
    jvp.__name__, jvp.__module__, jvp.__provenance__ = f"{primitive.name}_jvp", place.module, place
    jvp_rules.register(primitive, jvp, symbolic_zeros=True, **flags)


def _checked_rules(helper: str, primitive: Primitive, rules: Sequence[object]) -> dict[int, str]:
    """Check the arguments of a helper such as `defjvp`, which takes one rule for each operand.

    Returns:
        The reasons of operands that are not differentiable, by position.

    Raises:
        TypeError: the primitive has several results, a rule is not callable, or the number of rules cannot be the
            number of operands.
    """
    name = primitive.name
    if primitive.multiple_results:
        raise TypeError(
            f"{helper}: primitive {name!r} has several results: register a JVP rule, which gives a pair of lists"
        )
    for i, rule in enumerate(rules):
        if rule is not None and not callable(rule):
            raise TypeError(
                f"{helper}: the rule of operand {i} of primitive {name!r} is a function, nondifferentiable(reason), or "
                f"None if the derivative is zero; got {rule!r}"
            )
    least, most = _operand_counts(primitive)
    if not least <= len(rules) <= most:
        exact = f"{least}" if least == most else f"at least {least}" if len(rules) < least else f"at most {most}"
        raise _wrong_count(helper, primitive, len(rules), exact)
    return {i: rule.reason for i, rule in enumerate(rules) if isinstance(rule, nondifferentiable)}


def _wrong_count(helper: str, primitive: Primitive, given: int, wanted: object) -> TypeError:
    """Return the error for a helper that was given more or fewer rules than the primitive has operands."""
    noun = "operand" if str(wanted).endswith("1") else "operands"
    error = TypeError(
        f"{helper}: primitive {primitive.name!r} has {wanted} {noun}, and was given "
        f"{given} rule{'' if given == 1 else 's'}: pass one for each operand, None if the derivative is zero, "
        "nondifferentiable(reason) if it does not exist"
    )
    mark(error, primitive)
    return error


def _operand_counts(primitive: Primitive) -> tuple[int, float]:
    """Return the least and the greatest number of operands that the signatures of a primitive's rules allow."""
    least, most = max(primitive.linear_in, default=0) + 1, float("inf")
    for fn in (primitive.decomposition, _written(abstract_eval_rules, primitive), _written(impl_rules, primitive)):
        if isinstance(fn, np.ufunc):
            return fn.nin, fn.nin
        kinds = [p.kind for p in _parameters(fn)]
        if kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
            least = max(least, kinds.count(inspect.Parameter.POSITIONAL_ONLY))
            most = min(most, sum(kind in _POSITIONAL for kind in kinds))
    return least, max(most, least)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _written(registry: Any, primitive: Primitive) -> Any:
    rule = registry.rule_of(primitive)
    return None if rule is None or rule.derived is not None or "by" in rule.flags else rule.fn


def _parameters(fn: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return []
