"""`checkify` as an interpreter.

    checkify : (a -> b) -> a -> (error, b)

The interpreter does not box values. While its trace is on top, each application of a primitive is processed by a rule,
which binds the primitive one level down and adds possible failures to the current `Checks`. The rule of a higher-order
primitive transforms the inner jaxpr to one that returns its error beside its results, and joins this error to the
current one. The first failure counts.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Derivation,
    Primitive,
    RuleRegistry,
    ShapedArray,
    Trace,
    Tracer,
    abstract_eval_rules,
    as_array,
    current_trace,
    decomposed,
    dtypes,
    find_primitive,
    flat_decomposition,
    get_aval,
    impl_rules,
    inline_closed,
    is_array_like,
    jaxpr_as_fun,
    jvp_rules,
    memoised,
    mismatch,
    run_with_trace,
    set_current_trace,
    stage_closed,
    vmap_rules,
)
from corejax.extend.messages import capture_source
from corejax.extend.programs import subjaxprs
from corejax.extend.transforms import replayed_source
from corejax.extend.types import ValueType
from corejax_checkify.check_primitive import EFFECTS
from corejax_checkify.failures import CheckedError, Failure, NaNError
from corejax_checkify.state import ErrorType, State, Types, as_state, constant, typed, without_derivative
from corejax_lax_basic import lax

Kinds = frozenset[type[CheckedError]]

checkify_rules = RuleRegistry(
    "checkify",
    "checkify rule",
    """\
    @checkify_rules.register({var})
    def {name}_checkify(checks, *operands, **params):
        out = {var}.bind(*operands, **params)
        if checks.on(NaNError):
            checks.add(lax.reduce_or(lax.ne(out, out), axes), NaNError, '{name}')  # fails where True
        return out""",
    required=False,
    derived_by=("call", "decomposition", "NaN in results"),
)
__corejax_registers_for_caller__ = True  # rules registered here are attributed to the file of the rule


class Checks:
    """The possible failures so far, and the enabled kinds. It is the first argument of rules, which add to it.

    Attributes:
        kinds: the enabled kinds of failures.
        source: the user's line of the current primitive.
    """

    __slots__ = ("_failures", "_payloads", "_state", "kinds", "source")

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.source: Any = None
        self._failures: list[tuple[Failure, Types]] = []
        self._payloads: tuple[Types, ...] = ()
        self._state: State | None = None

    def on(self, kind: type[CheckedError]) -> bool:
        """Return whether checks of this kind are enabled."""
        return kind in self.kinds

    def add(self, fails: Any, kind: type[CheckedError], *static: Any, payload: Sequence[Any] = ()) -> None:
        """Add a failure that occurs if `fails` is true. If several failures occur, the first one counts.

        Args:
            fails: bool[], which may be traced.
            kind: a subclass of `CheckedError`. If it is not enabled, nothing is added.
            *static: the first arguments of its `message`, hashable and not traced.
            payload: the other arguments of its `message`, arrays.

        Raises:
            TypeError: if `fails` is not a boolean scalar.
        """
        if not self.on(kind):
            return
        aval = get_aval(fails)
        if aval.shape != () or aval.dtype != np.bool_:
            raise TypeError(f"Checks.add takes a boolean scalar, true if {kind.__name__} occurs, got {aval!r}")
        payload = [without_derivative(as_array(x)) for x in payload]
        failure = Failure(kind, static, self.source)
        types = typed(payload)
        state = State(fails, constant(0, np.int32), {types: payload} if types else {})
        self.merge(ErrorType([(failure, types)], [types] if types else []), state)

    def merge(self, error_type: ErrorType, state: State) -> None:
        """Join a later error to the current one."""
        if self._state is None:
            self._state = state
        else:
            self._state = self._state.or_else(state.shifted(len(self._failures)))
        self._failures.extend(error_type.failures)
        self._payloads = tuple(self._state.payloads)

    def error_type(self) -> ErrorType:
        """Return the type of the error."""
        return ErrorType(self._failures, self._payloads)

    def leaves(self) -> list[Any]:
        """Return the error's arrays: predicate, code and payloads; an empty list if nothing can fail.

        The arrays are released, as they are tracers of a program that ends with them.
        """
        state, self._state = self._state, None
        return [] if state is None else state.leaves(self._payloads)

    def run(self, fun: Callable[..., Sequence[Any]], operands: Iterable[Any], debug: Any = None) -> Any:
        """Run a function with checks, and return its results."""
        return run_with_trace(CheckifyTrace(current_trace(), self, debug), fun, operands)

    def call(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any], param: str) -> list[Any]:
        """Bind a primitive that calls the program in a parameter once, with the checked program; return its results."""
        program, error_type = checked_jaxpr(params[param], self.kinds)
        outs = primitive.bind(*operands, **{**params, param: program})
        return self.taken(outs, error_type)

    def taken(self, outs: Sequence[Any], error_type: ErrorType) -> list[Any]:
        """Split the outputs of a checked program: join its error to the current one, and return its results."""
        count = len(outs) - len(error_type.avals())
        if error_type.failures:
            self.merge(error_type, as_state(error_type, outs[count:]))
        return list(outs[:count])

    def keeps_checks(self, primitive: Primitive, params: dict[str, Any]) -> None:
        """Raise MissingRuleError if the primitive's programs have checks, which the primitive without a rule loses."""
        if "higher_order" in primitive.tags and any(EFFECTS & program.effects for program in subjaxprs(params)):
            raise checkify_rules.missing(primitive)

    def no_nan(self, name: str, values: Iterable[Any], operands: Iterable[Any] = ()) -> None:
        """Add a NaN failure of a primitive that occurs if a result has NaN and none of `operands` has."""
        if not self.on(NaNError):
            return
        fails = any_nan(values)
        if fails is None:
            return
        had_nan = any_nan(operands)
        if had_nan is not None:
            fails = lax.bitwise_and(fails, lax.bitwise_not(had_nan))
        self.add(fails, NaNError, name)


def any_nan(values: Iterable[Any]) -> Any:
    """Return whether any of the arrays has NaN, as bool[]; None if their dtypes have no NaN."""
    result = None
    for x in values:
        aval = get_aval(x)
        if isinstance(aval, ValueType) or not dtypes.is_inexact(aval.dtype) or not aval.size:
            continue
        here = lax.ne(x, x)
        here = lax.reduce_or(here, tuple(range(aval.ndim))) if aval.ndim else here
        result = here if result is None else lax.bitwise_or(result, here)
    return result


class CheckifyTrace(Trace):
    """The trace that applies checkify rules.

    Attributes:
        checks: the possible failures, to which rules add.
    """

    __slots__ = ("checks",)

    parent: Trace  # never None, as this trace does not stage

    interpreter = "checkify"

    def __init__(self, parent: Trace, checks: Checks, debug: Any = None) -> None:
        super().__init__(parent, debug)
        self.checks = checks

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Run the checkify rule one level down."""
        rule = checkify_rules.table.get(primitive) or checkify_rules.lookup(primitive)
        checks = self.checks
        earlier, checks.source = checks.source, replayed_source() or capture_source()
        try:
            with set_current_trace(self.parent):
                out = rule(checks, *args, **params)
        finally:
            checks.source = earlier
        outs = list(out) if primitive.multiple_results else [out]
        if "higher_order" not in primitive.tags:
            _check_types(primitive, primitive.abstract(tuple(map(get_aval, args)), params), outs)
        return outs


def _check_types(primitive: Primitive, expected: Sequence[ShapedArray], outs: Sequence[Any]) -> None:
    """Check that a rule returned values of the types of the primitive's results."""
    if len(outs) != len(expected):
        raise mismatch(checkify_rules, primitive, f"{len(outs)} results, the primitive has {len(expected)}")
    for i, (x, aval) in enumerate(zip(outs, expected, strict=True)):
        known = isinstance(x, Tracer) or is_array_like(x)
        got = get_aval(x) if known else None
        if got is None or (got.shape, got.dtype) != (aval.shape, aval.dtype):
            shown = repr(x) if got is None else got.str_short()
            raise mismatch(
                checkify_rules, primitive, f"{shown} as result {i}, but the primitive returns {aval.str_short()}"
            )


def checked_jaxpr(closed: ClosedJaxpr, kinds: Kinds) -> tuple[ClosedJaxpr, ErrorType]:
    """Transform a program to one that also returns its error, for rules of higher-order primitives.

    Args:
        closed: a program `a -> b`.
        kinds: the enabled kinds of failures (`checks.kinds`).

    Returns:
        The program `a -> (b, leaves of the error)`, and the type of the error; see `Checks.taken`. If nothing can fail,
        the program is `closed` itself.
    """

    def make() -> tuple[ClosedJaxpr, ErrorType]:
        checks = Checks(kinds)

        def flat(*args: Any) -> list[Any]:
            outs = checks.run(jaxpr_as_fun(closed), args, closed.jaxpr.debug_info)
            return [*outs, *checks.leaves()]

        program = stage_closed(flat, closed.in_avals, closed.jaxpr.debug_info)
        error_type = checks.error_type()
        return (program if error_type.failures or EFFECTS & closed.effects else closed), error_type

    return memoised(closed, ("checkify", kinds), make)


def for_primitive(name: str, rule: Callable[..., Any], *args: Any) -> None:
    """Register `rule(primitive, *args, checks, *operands, **params)` for a primitive by name, if it is installed."""
    primitive = find_primitive(name)
    if primitive is not None:
        checkify_rules.register(primitive, functools.partial(rule, primitive, *args))


# -- derived rules -----------------------------------------------------------------------------------------------


def _from_call(primitive: Primitive) -> Callable[..., Any] | None:
    """Derive a rule that calls the checked program, for a primitive with rules from `defcall`."""
    rules = [registry.rule_of(primitive) for registry in (impl_rules, abstract_eval_rules, jvp_rules, vmap_rules)]
    written = [rule.fn for rule in rules if rule is not None and getattr(rule.fn, "__helper__", None) == "defcall"]
    if len(written) < len(rules):
        return None
    parameters = inspect.signature(written[0]).parameters.values()
    (param,) = (p.name for p in parameters if p.kind is p.KEYWORD_ONLY)

    def rule(checks: Checks, *operands: Any, **params: Any) -> list[Any]:
        return checks.call(primitive, operands, params, param)

    return rule


def _from_decomposition(primitive: Primitive) -> Callable[..., Any] | None:
    """Derive a rule that checks the decomposition, or binds the primitive if nothing in it can fail."""
    if flat_decomposition(primitive) is None:
        return None

    def rule(checks: Checks, *operands: Any, **params: Any) -> Any:
        closed = decomposed(primitive, [get_aval(x) for x in operands], params)
        program, error_type = checked_jaxpr(closed, checks.kinds)
        if program is closed:
            return primitive.bind(*operands, **params)
        outs = checks.taken(inline_closed(program, operands), error_type)
        return outs if primitive.multiple_results else outs[0]

    return rule


def _of_results(primitive: Primitive) -> Callable[..., Any]:
    """Derive a rule that fails if a result has NaN and no operand has."""

    def rule(checks: Checks, *operands: Any, **params: Any) -> Any:
        checks.keeps_checks(primitive, params)
        out = primitive.bind(*operands, **params)
        checks.no_nan(primitive.name, out if primitive.multiple_results else [out], operands)
        return out

    return rule


checkify_rules.derivations.append(Derivation("call", _from_call, needs="defcall"))
checkify_rules.derivations.append(Derivation("decomposition", _from_decomposition, needs="a decomposition"))
checkify_rules.derivations.append(Derivation("NaN in results", _of_results))
