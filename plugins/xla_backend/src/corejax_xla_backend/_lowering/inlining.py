"""How a translation context writes a program's equations: by their translation rules, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    MissingRuleError,
    Var,
    attribute_to_rule,
    bottom_trace,
    describe_source,
    dtypes,
    host_value,
    set_current_trace,
    xla_translations,
)
from corejax_xla_backend._lowering.explicit_axes import constrained
from corejax_xla_backend._lowering.partitioned_calls import equation_in_parts, is_split
from corejax_xla_backend._lowering.results import results_of_rule
from corejax_xla_backend._lowering.types import KNOWN_NAN, KnownValue, Value

if TYPE_CHECKING:
    from corejax_xla_backend._lowering.module import ModuleBuilder


# Structural operations that repeat the elements of their first operand.
_SPREADING = frozenset({"broadcast_in_dim", "reshape"})


class Inlining:
    """Methods of `TranslationContext`; its attributes are there."""

    __slots__ = ()

    module: ModuleBuilder
    platform: str
    lines: list[str]
    mark: str
    scope: tuple[str, ...]
    source: Any
    constant: Callable[..., Value]
    _constants: dict[Any, Value]

    def inline(self, closed: ClosedJaxpr, vals: Sequence[Value]) -> list[Value]:
        """Write a program's operations here."""
        consts = [self.constant(c, v.aval.dtype) for c, v in zip(closed.consts, closed.jaxpr.constvars, strict=True)]
        return self.inline_jaxpr(closed.jaxpr, [*consts, *vals])

    def inline_elementwise(self, closed: ClosedJaxpr, vals: Sequence[Value]) -> list[Value]:
        """As `inline`, for the body of an elementwise primitive: rules see `in_elementwise` meanwhile."""
        self.module.elementwise += 1
        try:
            return self.inline(closed, vals)
        finally:
            self.module.elementwise -= 1

    @property
    def in_elementwise(self) -> bool:
        """See `TranslationContext`."""
        return self.module.elementwise > 0

    def inline_jaxpr(self, jaxpr: Jaxpr, vals: Sequence[Value]) -> list[Value]:
        """Write an open program's operations here; `vals` are its constants and arguments."""
        env: dict[Any, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), vals, strict=True))
        module, platform = self.module, self.platform
        around = self.mark, self.scope, self.source
        scope = self.scope
        ready: dict[Any, Any] = {}
        known = KnownValue in map(type, vals)
        scalars: dict[Var, Any] = {}
        located: dict[Any, tuple[str, tuple[str, ...]]] = {}

        def read(atom: Any) -> Value:
            return env[atom] if type(atom) is Var else self.constant(atom.val, atom.aval.dtype)

        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            rule = ready.get(primitive)
            if rule is None:
                rule = ready[primitive] = _translation(eqn, platform)
            source = eqn.source_info
            place = (primitive, id(source[0]), source[1:]) if source is not None else primitive
            found = located.get(place)
            if found is None or "name" in eqn.params:
                found = located[place] = self.module.locations.of_equation(scope, eqn)
            self.mark, self.scope = found
            self.source = source
            invars = eqn.invars
            operands = [env[v] if type(v) is Var else read(v) for v in invars]
            opaque, line, constant = module.opaque, len(self.lines), len(self._constants)
            try:
                out = rule(self, [v.aval for v in invars], operands, **eqn.params)
            except Exception as error:
                attribute_to_rule(error, primitive, eqn.source_info, "xla_translation")
                raise
            outs = results_of_rule(primitive, out, eqn.outvars)
            if module.opaque > opaque:
                outs = self._in_parts(eqn, rule, operands, outs, (opaque, line, constant))
            if known and KnownValue in map(type, operands):
                outs = _known_results(eqn, operands, outs)
            elif scalars or Literal in map(type, invars):
                _mark_nan(eqn, scalars, outs)
            for v, x in zip(eqn.outvars, outs, strict=True):
                if v.aval.refinement is not None:
                    env.update(zip(eqn.outvars, constrained(self, eqn, outs), strict=True))
                    break
                env[v] = x
            known = known or type(out) is not Value
        self.mark, self.scope, self.source = around
        return [read(v) for v in jaxpr.outvars]

    def _in_parts(
        self,
        eqn: JaxprEqn,
        rule: Callable[..., Any],
        operands: Sequence[Value],
        outs: Sequence[Value],
        written: tuple[int, int, int],
    ) -> Sequence[Value]:
        """The results of an equation of which operations were written that XLA cannot partition: written anew, so that
        it can, as far as rules tell how."""
        self.module.opaque, lines, constants = written
        if not is_split(self.module, eqn):
            return outs
        del self.lines[lines:]
        for key in list(self._constants)[constants:]:
            del self._constants[key]
        return equation_in_parts(self, eqn, rule, operands)


def _known_results(eqn: JaxprEqn, operands: Sequence[Value], outs: Sequence[Value]) -> Sequence[Value]:
    """The results, known where the operands are: what is computed of an index, to choose a branch by it."""
    vals = [_scalar(atom) if type(atom) is Literal else v.known for atom, v in zip(eqn.invars, operands, strict=True)]
    if not _is_scalar_function(eqn, vals):
        return outs
    return [KnownValue(outs[0], _evaluate(eqn, vals))]


def _mark_nan(eqn: JaxprEqn, scalars: dict[Var, Any], outs: Sequence[Value]) -> None:
    """Mark a result as a known NaN if the compiler can tell that it is one: `log(-1)`, `zeros(8) / zeros(8)`.

    It can also tell that a product with an infinity or a quotient by zero is NaN, whatever the other operand
    is computed from (`x * 0 / 0`), so these are marked too.

    Args:
        eqn: the equation.
        scalars: the elements of arrays of equal elements that are computed from literals alone; that of this result is
            added.
        outs: the results of the equation in the module.
    """
    [out, *more], name = eqn.outvars or [None], eqn.primitive.name
    spread = name in _SPREADING
    if out is None or more or eqn.effects or not (spread or "elementwise" in eqn.primitive.tags):
        return
    vals = [_scalar(atom) if type(atom) is Literal else scalars.get(atom) for atom in eqn.invars]
    inexact = dtypes.is_inexact(out.aval.dtype)
    if None not in vals:
        try:
            value = scalars[out] = vals[0] if spread else _evaluate(eqn, vals)
        except FloatingPointError:  # `debug_nans` is on
            value = scalars[out] = np.nan
        except Exception:  # it may have no impl rule, or none for scalars; that is no reason not to compile it
            return
        nan = value != value
    elif inexact and name == "mul":
        nan = any(v is not None and abs(v) == np.inf for v in vals)
    else:
        nan = inexact and name == "div" and vals[1] == 0
    if inexact and nan:
        outs[0].origins |= KNOWN_NAN


def _scalar(literal: Literal) -> Any:
    return literal.aval.dtype.type(literal.val)


def _is_scalar_function(eqn: JaxprEqn, vals: Sequence[Any]) -> bool:
    """Return whether the equation computes one scalar, without effects, from operands that are all known."""
    several = eqn.primitive.multiple_results
    return None not in vals and not (eqn.effects or several or eqn.outvars[0].aval.shape)


def _evaluate(eqn: JaxprEqn, vals: Sequence[Any]) -> Any:
    with set_current_trace(bottom_trace()):
        return host_value(eqn.primitive.bind(*vals, **eqn.params))[()]


def _translation(eqn: JaxprEqn, platform: str) -> Callable[..., Any]:
    try:
        return xla_translations.lookup(eqn.primitive, platform)  # type: ignore[no-any-return]
    except MissingRuleError as error:  # which names the line that had the program compiled
        error.add_note(f"The operation that has to be translated was traced at {describe_source(eqn.source_info)}.")
        raise
