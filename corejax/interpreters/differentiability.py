"""Derivatives that do not exist, by an author's declaration, or are zero because all results are integers.

The module also determines the number of a primitive's operands before its first application.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corejax.base.provenance import Provenance
from corejax.core.avals import Avals, Operands, Params
from corejax.core.primitive import Primitive
from corejax.core.trace import state
from corejax.dtypes import is_inexact
from corejax.errors import NotDifferentiableError
from corejax.messages import source_info
from corejax.messages.marks import mark
from corejax.rules import Derivation, RuleFn, abstract_eval_rules, impl_rules, jvp_rules
from corejax.rules.abstract_eval import promised

__corejax_registers_for_caller__ = True


class nondifferentiable:
    """The declaration, instead of a rule, that a derivative does not exist.

    A nonzero tangent raises a `NotDifferentiableError` with the reason; a symbolic zero is accepted.

        defjvp(hist_p, nondifferentiable("counts jump"), weights_rule)      # in one operand
        jvp_rules.register(sort_key_p, nondifferentiable("keys are bits"))  # in all of them

    Attributes:
        reason: a sentence or a part of one, for the error message.

    Raises:
        TypeError: the reason is not a string, or empty.
    """

    __slots__ = ("__provenance__", "reason")

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str) or not reason:
            raise TypeError(f"nondifferentiable takes the reason, a string, got {reason!r}")
        self.reason = reason
        self.__provenance__ = Provenance.of_caller()

    def __call__(self, *args: object, **params: object) -> Any:
        """Raise NotDifferentiableError, if a caller runs the declaration as a rule."""
        raise NotDifferentiableError(f"not differentiable: {self.reason}")

    def __repr__(self) -> str:
        return f"nondifferentiable({self.reason!r})"


def why_not_differentiable(primitive: Primitive, operand: int) -> str | None:
    """Return the reason why an operand is declared not differentiable, or None if it is differentiable."""
    rule = jvp_rules.rule_of(primitive)
    if rule is None:
        return None
    if isinstance(rule.fn, nondifferentiable):
        return rule.fn.reason
    declared: Mapping[int, str] = rule.flags.get("nondifferentiable") or {}
    return declared.get(operand)


def refusing(primitive: Primitive, fn: RuleFn, flags: Mapping[str, object]) -> RuleFn:
    """Wrap a JVP rule so that it raises for nonzero tangents of operands that are declared not differentiable.

    Raises:
        TypeError: the flag `nondifferentiable` is not a mapping from operands' positions to reasons.
    """
    reason_for_all = fn.reason if isinstance(fn, nondifferentiable) else None
    declared = flags.get("nondifferentiable") or {}
    if not isinstance(declared, Mapping) or not all(
        type(i) is int and i >= 0 and isinstance(why, str) for i, why in declared.items()
    ):
        raise TypeError(
            f"primitive {primitive.name!r}: nondifferentiable= takes reasons by operands' positions, "
            f"{{1: 'why'}}, got {declared!r}"
        )
    if reason_for_all is None and not declared:
        return fn

    def rule(primals: Operands, tangents: Operands, /, **params: object) -> Any:
        for i, tangent in enumerate(tangents):
            reason = declared.get(i, reason_for_all)
            if tangent is not None and reason is not None:
                raise _refusal(primitive, f"in operand {i}", reason)
        return fn(primals, tangents, **params)

    return rule


def refusing_transposition(primitive: Primitive, fn: nondifferentiable) -> RuleFn:
    """Return the transpose rule of a primitive that is declared to have no transpose; it always raises."""

    def refuse(ct: object, /, *operands: object, **params: object) -> Any:
        raise _refusal(primitive, "in reverse mode", fn.reason)

    return refuse


def _refusal(primitive: Primitive, where: str, reason: str) -> NotDifferentiableError:
    line = source_info.user_line() if state.source is None else source_info.describe_source(state.source)
    error = NotDifferentiableError(
        f"primitive {primitive.name!r} (from {primitive.provenance.owner}) is not differentiable {where}: {reason}. "
        f"It was differentiated at {line}. If the operand is a constant, use stop_gradient on it."
    )
    mark(error, primitive)
    return error


def checked_rules(helper: str, primitive: Primitive, rules: Sequence[object]) -> dict[int, str]:
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
    least, most = operand_counts(primitive)
    if not least <= len(rules) <= most:
        exact = f"{least}" if least == most else f"at least {least}" if len(rules) < least else f"at most {most}"
        raise wrong_count(helper, primitive, len(rules), exact)
    return {i: rule.reason for i, rule in enumerate(rules) if isinstance(rule, nondifferentiable)}


def wrong_count(helper: str, primitive: Primitive, given: int, wanted: object) -> TypeError:
    """Return the error for a helper that was given more or fewer rules than the primitive has operands."""
    noun = "operand" if str(wanted).endswith("1") else "operands"
    error = TypeError(
        f"{helper}: primitive {primitive.name!r} has {wanted} {noun}, and was given "
        f"{given} rule{'' if given == 1 else 's'}: pass one for each operand, None if the derivative is zero, "
        "nondifferentiable(reason) if it does not exist"
    )
    mark(error, primitive)
    return error


def operand_counts(primitive: Primitive) -> tuple[int, float]:
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


# -- integer results -----------------------------------------------------------------------------------------

# Primitives that have returned only integers and booleans in an application; the derivation below applies to them.
_discrete: weakref.WeakSet[Primitive] = weakref.WeakSet()


def note_discrete(primitive: Primitive, avals: Avals, params: Params) -> bool:
    """Whether all results are integers or booleans for operands of these types; if so, remember the primitive."""
    types = promised(primitive, tuple(avals), params)
    if types is None or any(is_inexact(a.dtype) for a in types):
        return False
    _discrete.add(primitive)
    return True


def _zero_derivative(primitive: Primitive) -> RuleFn | None:
    if primitive not in _discrete:
        return None

    def rule(primals: Operands, tangents: Operands, /, **params: object) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        outs = out if primitive.multiple_results else [out]
        if any(is_inexact(x.dtype) for x in outs):  # the primitive returns floats for other types of operands
            raise jvp_rules.missing(primitive)
        return out, [None] * len(outs) if primitive.multiple_results else None

    return rule


jvp_rules.derivations.append(Derivation("integer results", _zero_derivative, flags={"symbolic_zeros": True}))
