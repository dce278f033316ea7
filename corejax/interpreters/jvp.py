"""Forward-mode differentiation: pushing tangents forward.

    jvp : (a -> b) -> (a, T a) -> (b, T b)

The function runs once, on pairs of a primal and a tangent. For each primitive, the JVP rule computes the results and
their tangents; it runs one level down, so that an outer `jvp` differentiates the rule (higher derivatives).

Invariants. A zero tangent is `None`, and a value with a zero tangent is not boxed: operations that do not depend on a
differentiated argument cost no more than without `jvp`. A tangent has the shape, dtype and refinement of its primal,
and is strongly typed. Integers and booleans have no tangents. `run_rule` checks this after each rule.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from corejax import tree
from corejax.arrays.array import Array, Value, as_array
from corejax.arrays.structural import structural
from corejax.base.lists import unzip_map
from corejax.core.avals import Avals, FlatFun, Operands, Params, ShapedArray, avals_of, conform, get_aval
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace, Tracer, run_with_trace, state
from corejax.interpreters.checks import refuse_leaks
from corejax.interpreters.differentiability import nondifferentiable, note_discrete, refusing
from corejax.interpreters.engine import engine
from corejax.ir.debug_info import Debug
from corejax.rules import RuleFn, jvp_rules
from corejax.rules.abstract_eval import promised
from corejax.rules.run_rule import check_result, check_tangent, each_result, run_rule
from corejax.settings.config import config

Tangent: TypeAlias = Value | None  # None is zero


class JVPTracer(Tracer):
    """A primal with its (nonzero) tangent; its type is the primal's."""

    __slots__ = ("aval", "primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: object) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        try:
            self.aval = primal.aval
        except AttributeError:  # a NumPy array or a Python number
            self.aval = get_aval(primal)

    def steering(self) -> Any:
        """Return the primal if it is known, for Python control flow; None otherwise."""
        primal = self.primal
        return primal.steering() if isinstance(primal, Tracer) else as_array(primal)

    def origin(self) -> str:
        """Return the primal's origin if the primal is traced."""
        return self.primal.origin() if isinstance(self.primal, Tracer) else super().origin()

    def __repr__(self) -> str:
        return f"JVPTracer(primal={self.primal!r}, tangent={self.tangent!r})"


class JVPTrace(Trace):
    """Applies JVP rules to primal-tangent pairs.

    Attributes:
        replay: `Engine.replay` if the engine records the equations of rules above this parent, else None.
    """

    __slots__ = ("replay",)

    interpreter = "jvp"

    def __init__(self, parent: Trace, debug: Debug = None) -> None:
        super().__init__(parent, debug)
        self.replay: Any = engine().replay if engine().records(parent) else None

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: Params) -> list[Any]:
        """Run the JVP rule one level down; if all tangents are zero, let the parent interpret the primitive."""
        primals, tangents, has_tangent = [], [], False
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                has_tangent = True
            else:
                primals.append(x)
                tangents.append(None)
        if not has_tangent:
            return self.parent.process_primitive(primitive, args, params)
        run_rule = self.replay_rule if self.replay else self.run_rule
        return run_rule(primitive, primals, tangents, params)

    def run_rule(self, primitive: Primitive, primals: list[Any], tangents: list[Any], params: Params) -> list[Any]:
        """Run the rule with the parent on top; check the results against the types that abstract evaluation infers."""
        try:
            avals = tuple([x.aval for x in primals])
        except AttributeError:  # convert NumPy arrays and numbers, so that operators in rules are corejax's
            primals = [as_array(x) for x in primals]
            avals = avals_of(primals)
        rule = jvp_rules.table.get(primitive) or _rule(primitive, avals, params)
        out, tangent = run_rule(jvp_rules, primitive, rule, self.parent, (primals, tangents), params, True)
        # The types of higher-order primitives may not be inferred while tracing.
        types = None if "higher_order" in primitive.tags else promised(primitive, avals, params)
        if not primitive.multiple_results:
            return [self._boxed(primitive, out, tangent, None if types is None else types[0])]
        return [self._boxed(primitive, *each) for each in each_result(jvp_rules, primitive, out, tangent, types)]

    def replay_rule(self, primitive: Primitive, primals: list[Any], tangents: list[Any], params: Params) -> list[Any]:
        """Do as `run_rule`, but let the engine append the equations if it has recorded the rule for these types."""
        rule = jvp_rules.table.get(primitive)
        call = rule and self.replay(primitive, rule, self.parent, (*primals, *tangents), None, params)
        if type(call) is list:
            out, tangent, _ = call
            return [out if tangent is None else JVPTracer(self, out, tangent)]
        outs = self.run_rule(primitive, primals, tangents, params)
        if call is not None:
            call.learn(self.unbox(outs[0]))
        return outs

    def _boxed(self, primitive: Primitive, out: Any, tangent: Any, aval: ShapedArray | None) -> Any:
        """Check a result against its type `aval`, if known, and its tangent against the result; box them."""
        out_aval = getattr(out, "aval", None)
        if out_aval is not aval and aval is not None:
            check_result(jvp_rules, primitive, out, aval)
        if tangent is None:
            return out
        if out_aval is None or not out_aval.has_tangents or getattr(tangent, "aval", None) is not out_aval:
            check_tangent(primitive, out, tangent)
            if out_aval is not None:
                tangent = conform(tangent, out_aval)
        return JVPTracer(self, out, tangent)

    def unbox(self, x: object) -> tuple[Any, Any]:
        """Return the primal and the tangent (None for zero) of any value."""
        return (x.primal, x.tangent) if type(x) is JVPTracer and x._trace is self else (x, None)


def jvp_flat(fun: FlatFun, primals: Operands, tangents: Operands, debug: Debug = None) -> tuple[list[Any], list[Any]]:
    """Differentiate a flat function in one direction.

    Args:
        fun: `(*values) -> sequence of values`.
        primals: arrays, the point at which to differentiate.
        tangents: the direction: for each primal a tangent of its shape and dtype, or None for zero.
        debug: the user's function, for messages.

    Returns:
        The results and their tangents, of the same shapes and dtypes, or None for zero.
    """
    trace = JVPTrace(state.trace, debug)
    boxed = [
        x if t is None else JVPTracer(trace, as_array(x), as_array(t)) for x, t in zip(primals, tangents, strict=True)
    ]
    primals_out, tangents_out = unzip_map(trace.unbox, run_with_trace(trace, fun, boxed))
    refuse_leaks(trace)
    return primals_out, tangents_out


# -- helpers for rules -------------------------------------------------------------------------------------------


def _rule(primitive: Primitive, avals: Avals, params: Params) -> RuleFn:
    """Return the JVP rule; derive a zero derivative if all results are integers for operands of these types.

    Raises:
        MissingRuleError: the primitive has no rule, and none can be derived.
    """
    rule = jvp_rules.find(primitive)
    if rule is None and not config.strict_rules and note_discrete(primitive, avals, params):
        rule = jvp_rules.find(primitive)
    if rule is None:
        raise jvp_rules.missing(primitive)
    return rule


def zeros_like(x: object) -> Value:
    """Return zeros of the tangent type of a value."""
    return zeros_of(tangent_aval(get_aval(x)))


def zeros_of(aval: ShapedArray) -> Value:
    """Return zeros of a type."""
    return conform(structural.zeros(_constant_aval(aval)), aval)


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of tangents and cotangents: that of the value, strongly typed."""
    return aval.tangent_type()


def as_tangent(x: object, aval: ShapedArray) -> Value:
    """Convert `x` to the tangent type of a primal of type `aval`."""
    target = tangent_aval(aval)
    x = x if isinstance(x, Tracer) else as_array(x)
    if x.aval is target:
        return x
    if x.aval.refinement is None:
        x = _retyped(x, _constant_aval(target))
    return _retyped(conform(x, target), target)


def _retyped(x: Value, aval: ShapedArray) -> Value:
    if x.aval is aval:
        return x
    if isinstance(x, Tracer):
        return structural.astype(x, aval.dtype)
    return x._with_aval(aval) if x.aval.dtype == aval.dtype else Array(np.asarray(x).astype(aval.dtype), aval)


def _constant_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type with which a constant can be created; `conform` adds the rest of the refinement of `aval`."""
    return aval if aval.refinement is None else aval.refined(aval.refinement.of_any_shape)


def instantiate(tangent: Tangent, primal: object) -> Value:
    """Return the tangent; if it is None, return zeros for the primal."""
    return zeros_like(primal) if tangent is None else tangent


def add_tangents(x: Tangent, y: Tangent) -> Tangent:
    """Return the sum of two tangents or cotangents, either of which may be None."""
    if x is None:
        return y
    return x if y is None else structural.add(x, y)


@jvp_rules.adapt.provide
def _with_zeros(primitive: Primitive, fn: RuleFn, flags: Mapping[str, object]) -> RuleFn:
    """Pass arrays of zeros to a rule that does not accept None; refuse tangents that are declared nonexistent."""
    if flags.get("symbolic_zeros") or isinstance(fn, nondifferentiable):
        return refusing(primitive, fn, flags)

    def rule(primals: Operands, tangents: Operands, /, **params: object) -> Any:
        instantiated = [
            zeros_like(x) if t is None and get_aval(x).has_tangents else t
            for x, t in zip(primals, tangents, strict=True)
        ]
        return fn(primals, instantiated, **params)

    return refusing(primitive, rule, flags)


@jvp_rules.derivations.from_decomposition(symbolic_zeros=True)
def _jvp_of_decomposition(primitive: Primitive, body: FlatFun) -> RuleFn:
    def rule(primals: Operands, tangents: Operands, /, **params: object) -> tuple[Any, Any]:
        outs, tangents_out = jvp_flat(functools.partial(body, **params), primals, tangents)
        return (outs, tangents_out) if primitive.multiple_results else (outs[0], tangents_out[0])

    return rule


tree.mark_leaf_types(JVPTracer)
