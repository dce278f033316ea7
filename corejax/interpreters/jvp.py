"""Forward-mode differentiation: pushing tangents forward.

    jvp : (a -> b) -> (a, T a) -> (b, T b)

A tracer holds a primal and its nonzero tangent. A zero tangent is `None`, and a value with one is not boxed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax import tree
from corejax.core.array import Array, as_array
from corejax.core.avals import ShapedArray, avals_of, conform, get_aval
from corejax.core.primitive import Primitive, flat_decomposition
from corejax.core.structural import structural
from corejax.core.trace import Trace, Tracer, run_with_trace, state
from corejax.dtypes import is_inexact
from corejax.interpreters.checks import refuse_leaks
from corejax.interpreters.differentiability import nondifferentiable, note_discrete, refusing
from corejax.interpreters.engine import engine
from corejax.rules import Derivation, jvp_rules
from corejax.rules.abstract_eval import promised
from corejax.rules.run_rule import check_result, check_tangent, each_result, run_rule
from corejax.settings.caches import clears_cache
from corejax.settings.config import config


class JVPTracer(Tracer):
    """A primal with its (nonzero) tangent; its type is the primal's."""

    __slots__ = ("aval", "primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        try:
            self.aval = primal.aval
        except AttributeError:  # a NumPy array, a number
            self.aval = get_aval(primal)

    def steering(self) -> Any:
        """The primal, where it is known: Python control flow on it works."""
        primal = self.primal
        return primal.steering() if isinstance(primal, Tracer) else as_array(primal)

    def origin(self) -> str:
        """As the primal's."""
        return self.primal.origin() if isinstance(self.primal, Tracer) else super().origin()

    def __repr__(self) -> str:
        return f"JVPTracer(primal={self.primal!r}, tangent={self.tangent!r})"


class JVPTrace(Trace):
    """Applies JVP rules to primal-tangent pairs.

    Attributes:
        replay: appends what a rule recorded before (`Engine.replay`), or None.
    """

    __slots__ = ("replay",)

    interpreter = "jvp"

    def __init__(self, parent: Trace, debug: Any = None) -> None:
        super().__init__(parent, debug)
        self.replay: Any = engine().replay if engine().records(parent) else None

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Run the JVP rule one level down; without a nonzero tangent, just the primitive."""
        primals, tangents, moves = self.unzip(args)
        if not moves:
            return self.parent.process_primitive(primitive, args, params)  # type: ignore[union-attr]
        run_rule = self.replay_rule if self.replay else self.run_rule
        outs, tangents_out = run_rule(primitive, primals, tangents, params)
        return [x if t is None else JVPTracer(self, x, t) for x, t in zip(outs, tangents_out, strict=True)]

    def unzip(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], bool]:
        """Return primals, tangents (or None), and whether there is any tangent."""
        primals, tangents, moves = [], [], False
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                moves = True
            else:
                primals.append(x)
                tangents.append(None)
        return primals, tangents, moves

    def run_rule(
        self, primitive: Primitive, primals: list[Any], tangents: list[Any], params: dict[str, Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Run the rule with the parent on top.

        Returns:
            Its results and their tangents (or None), checked to be of the types that abstract evaluation promises.
        """
        try:
            avals = tuple([x.aval for x in primals])
        except AttributeError:  # a NumPy array, a number: rules get arrays, whose operators are corejax's
            primals = [as_array(x) for x in primals]
            avals = avals_of(primals)
        rule = jvp_rules.table.get(primitive) or _rule(primitive, avals, params)
        out, tangent = run_rule(jvp_rules, primitive, rule, self.parent, (primals, tangents), params, True)
        types = None if params else primitive._memo.get(avals)
        if types is None and "higher_order" not in primitive.tags:  # those may have no types yet
            types = promised(primitive, avals, params)
        if not primitive.multiple_results:
            return (out,), (_checked_tangent(primitive, out, tangent, None if types is None else types[0]),)
        results = [*each_result(jvp_rules, primitive, out, tangent, types)]
        return [out for out, _, _ in results], [_checked_tangent(primitive, *each) for each in results]

    def replay_rule(
        self, primitive: Primitive, primals: list[Any], tangents: list[Any], params: dict[str, Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Do as `run_rule`, by the engine if it knows what the rule records for operands of these types."""
        rule = jvp_rules.table.get(primitive)
        call = rule and self.replay(primitive, rule, self.parent, (*primals, *tangents), None, params)
        if type(call) is list:
            return call[:1], call[1:2]
        outs, tangents_out = self.run_rule(primitive, primals, tangents, params)
        if call is not None:
            call.learn((*outs, *tangents_out))
        return outs, tangents_out

    def unbox(self, x: Any) -> tuple[Any, Any]:
        """Primal and tangent (or None) of any value."""
        return (x.primal, x.tangent) if type(x) is JVPTracer and x._trace is self else (x, None)


def _checked_tangent(primitive: Primitive, out: Any, tangent: Any, aval: ShapedArray | None) -> Any:
    """Check that a result is of type `aval` (None: not known), and its tangent of the result's; return the tangent."""
    found = getattr(out, "aval", None)
    if found is not aval and aval is not None:
        check_result(jvp_rules, primitive, out, aval)
    if tangent is None:
        return None
    moves = found is not None and (_inexact.get(found) or has_tangents(found))
    if not moves or getattr(tangent, "aval", None) is not found:
        check_tangent(primitive, out, tangent)
        if found is not None:
            tangent = conform(tangent, found)
    return tangent


def jvp_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any], debug: Any = None
) -> tuple[list[Any], list[Any]]:
    """Differentiate a flat function: lists of values in and out, None for zero tangents.

    Args:
        fun: `(*values) -> sequence of values`.
        primals: the point, arrays.
        tangents: for each the direction, of its shape and dtype, or None.
        debug: the user's function, for messages.

    Returns:
        The results, and for each its tangent, of its shape and dtype, or None.
    """
    trace = JVPTrace(state.trace, debug)
    boxed = [
        x if t is None else JVPTracer(trace, as_array(x), as_array(t)) for x, t in zip(primals, tangents, strict=True)
    ]
    pairs = [trace.unbox(x) for x in run_with_trace(trace, fun, boxed)]
    refuse_leaks(trace)
    return [p for p, _ in pairs], [t for _, t in pairs]


# -- helpers for rules -------------------------------------------------------------------------------------------


def _rule(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Callable[..., Any]:
    """The rule, which is derived where all results are integers.

    Raises:
        MissingRuleError: there is none.
    """
    found = jvp_rules.find(primitive)
    if found is None and not config.strict_rules and note_discrete(primitive, avals, params):
        found = jvp_rules.find(primitive)
    if found is None:
        raise jvp_rules.missing(primitive)
    return found


_inexact: dict[ShapedArray, bool] = {}  # whether values of a type have tangents
clears_cache(_inexact.clear)


def has_tangents(aval: ShapedArray) -> bool:
    """Whether values of a type have tangents: floating-point and complex numbers do."""
    found = _inexact.get(aval)
    if found is None:
        found = _inexact[aval] = is_inexact(aval.dtype)
    return found


def zeros_like(x: Any) -> Any:
    """Zeros of the tangent type of a value."""
    return zeros_of(tangent_aval(get_aval(x)))


def zeros_of(aval: ShapedArray) -> Any:
    """Return zeros of a type."""
    return conform(structural.zeros(_constant_aval(aval)), aval)


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """Type of tangents and cotangents: the value's own, strongly typed."""
    return aval.strip_weak_type()


def as_tangent(x: Any, aval: ShapedArray) -> Any:
    """A value as the tangent or cotangent of one of type `aval`: strongly typed, of its dtype."""
    wanted = tangent_aval(aval)
    x = x if isinstance(x, Tracer) else as_array(x)
    if x.aval is wanted:
        return x
    if x.aval.refinement is None:
        x = _retyped(x, _constant_aval(wanted))
    return _retyped(conform(x, wanted), wanted)


def _retyped(x: Any, aval: ShapedArray) -> Any:
    if x.aval is aval:
        return x
    if isinstance(x, Tracer):
        return structural.astype(x, aval.dtype)
    return x._with_aval(aval) if x.aval.dtype == aval.dtype else Array(np.asarray(x).astype(aval.dtype), aval)


def _constant_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type that a constant of this type can be made with; `conform` computes the rest of its refinement."""
    return aval if aval.refinement is None else aval.refined(aval.refinement.of_any_shape)


def instantiate(tangent: Any, primal: Any) -> Any:
    """A zero tangent made real."""
    return zeros_like(primal) if tangent is None else tangent


def add_tangents(x: Any, y: Any) -> Any:
    """Sum of two tangents or cotangents, either of which may be None."""
    if x is None:
        return y
    return x if y is None else structural.add(x, y)


@jvp_rules.adapt.provide
def _ready(primitive: Primitive, fn: Callable[..., Any], flags: Mapping[str, Any]) -> Callable[..., Any]:
    if flags.get("symbolic_zeros") or isinstance(fn, nondifferentiable):
        return refusing(primitive, fn, flags)

    def rule(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> Any:
        real = [
            zeros_like(x) if t is None and has_tangents(get_aval(x)) else t
            for x, t in zip(primals, tangents, strict=True)
        ]
        return fn(primals, real, **params)

    return refusing(primitive, rule, flags)


def _jvp_from_decomposition(primitive: Primitive) -> Callable[..., Any] | None:
    body = flat_decomposition(primitive)
    if body is None:
        return None

    def rule(primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> tuple[Any, Any]:
        outs, tangents_out = jvp_flat(functools.partial(body, **params), primals, tangents)
        return (outs, tangents_out) if primitive.multiple_results else (outs[0], tangents_out[0])

    return rule


jvp_rules.derivations.append(
    Derivation("decomposition", _jvp_from_decomposition, needs="a decomposition", flags={"symbolic_zeros": True})
)

tree.mark_leaf_types(JVPTracer)
