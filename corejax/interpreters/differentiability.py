"""Derivatives that do not exist, by an author's declaration, or are zero because all results are integers."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from corejax.base.provenance import Provenance
from corejax.core.avals import Avals, Operands, Params
from corejax.core.primitive import Primitive
from corejax.core.trace import state
from corejax.errors import NotDifferentiableError
from corejax.messages import source_info
from corejax.messages.marks import mark
from corejax.rules import Derivation, RuleFn, jvp_rules
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


# -- integer results -----------------------------------------------------------------------------------------

# Primitives that have returned only integers and booleans in an application; the derivation below applies to them.
_discrete: weakref.WeakSet[Primitive] = weakref.WeakSet()


def note_discrete(primitive: Primitive, avals: Avals, params: Params) -> bool:
    """Whether all results are integers or booleans for operands of these types; if so, remember the primitive."""
    types = promised(primitive, tuple(avals), params)
    if types is None or any(a.has_tangents for a in types):
        return False
    _discrete.add(primitive)
    return True


def _zero_derivative(primitive: Primitive) -> RuleFn | None:
    if primitive not in _discrete:
        return None

    def rule(primals: Operands, tangents: Operands, /, **params: object) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        outs = out if primitive.multiple_results else [out]
        if any(x.aval.has_tangents for x in outs):  # the primitive returns floats for other types of operands
            raise jvp_rules.missing(primitive)
        return out, [None] * len(outs) if primitive.multiple_results else None

    return rule


jvp_rules.derivations.append(Derivation("integer results", _zero_derivative, flags={"symbolic_zeros": True}))
