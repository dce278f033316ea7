"""`checkify` as an interpreter.

    checkify : (a -> b) -> a -> (error, b)

It boxes no values. While its trace is on top, each application of a primitive goes to a rule, which binds the primitive
one level down and says what may have failed. Where a program is inside a primitive, the rule makes of it a program that
gives an error of its own beside its results; the caller joins it with what it has: the first failure counts.
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
__corejax_registers_for_caller__ = True  # the provenance of a rule is its own file


class Checks:
    """What may have failed so far, and what is looked for. Rules are given it, and add to it.

    Attributes:
        kinds: kinds of failures that are looked for.
        source: the user's line that applied the primitive whose rule runs.
    """

    __slots__ = ("_failures", "_payloads", "_state", "kinds", "source")

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.source: Any = None
        self._failures: list[tuple[Failure, Types]] = []
        self._payloads: tuple[Types, ...] = ()
        self._state: State | None = None

    def on(self, kind: type[CheckedError]) -> bool:
        """Whether failures of this kind are looked for."""
        return kind in self.kinds

    def add(self, fails: Any, kind: type[CheckedError], *static: Any, payload: Sequence[Any] = ()) -> None:
        """Note that something fails here if `fails` is true; of several failures the first one counts.

        Args:
            fails: bool[], which may be traced.
            kind: a subclass of `CheckedError`. If it is not looked for, nothing is added.
            static: the first arguments of its `message`, known now and hashable.
            payload: the others: arrays.

        Raises:
            TypeError: `fails` is not a scalar boolean.
        """
        if not self.on(kind):
            return
        aval = get_aval(fails)
        if aval.shape != () or aval.dtype != np.bool_:
            raise TypeError(f"Checks.add takes a scalar boolean, true where {kind.__name__} happens, got {aval!r}")
        payload = [without_derivative(as_array(x)) for x in payload]
        failure = Failure(kind, static, self.source)
        types = typed(payload)
        state = State(fails, constant(0, np.int32), {types: payload} if types else {})
        self.merge(ErrorType([(failure, types)], [types] if types else []), state)

    def merge(self, error_type: ErrorType, state: State) -> None:
        """Join an error that happens here, of this type, with what there is."""
        if self._state is None:
            self._state = state
        else:
            self._state = self._state.or_else(state.shifted(len(self._failures)))
        self._failures.extend(error_type.failures)
        self._payloads = tuple(self._state.payloads)

    def error_type(self) -> ErrorType:
        """The type of the error."""
        return ErrorType(self._failures, self._payloads)

    def leaves(self) -> list[Any]:
        """The error's arrays: predicate, code and payloads; none where nothing can fail.

        They are kept no longer: they belong to a program whose tracing ends with them.
        """
        state, self._state = self._state, None
        return [] if state is None else state.leaves(self._payloads)

    def run(self, fun: Callable[..., Sequence[Any]], operands: Iterable[Any], debug: Any = None) -> Any:
        """What a function gives, what it binds being checked."""
        return run_with_trace(CheckifyTrace(current_trace(), self, debug), fun, operands)

    def call(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any], param: str) -> list[Any]:
        """Results of a primitive that applies the program in a parameter once: it calls the checked program instead."""
        program, error_type = checked_jaxpr(params[param], self.kinds)
        outs = primitive.bind(*operands, **{**params, param: program})
        return self.taken(outs, error_type)

    def taken(self, outs: Sequence[Any], error_type: ErrorType) -> list[Any]:
        """Results of a checked program, whose error, which follows them, is joined with what there is."""
        count = len(outs) - len(error_type.avals())
        if error_type.failures:
            self.merge(error_type, as_state(error_type, outs[count:]))
        return list(outs[:count])

    def keeps_checks(self, primitive: Primitive, params: dict[str, Any]) -> None:
        """Refuse to apply a primitive as it is whose programs have checks, which would be lost.

        Raises:
            MissingRuleError: it has some.
        """
        if "higher_order" in primitive.tags and any(EFFECTS & program.effects for program in subjaxprs(params)):
            raise checkify_rules.missing(primitive)

    def no_nan(self, name: str, values: Iterable[Any], operands: Iterable[Any] = ()) -> None:
        """Note that a primitive fails if one of its results has NaN, and none of these operands."""
        if not self.on(NaNError):
            return
        found = any_nan(values)
        if found is None:
            return
        given = any_nan(operands)
        if given is not None:
            found = lax.bitwise_and(found, lax.bitwise_not(given))
        self.add(found, NaNError, name)


def any_nan(values: Iterable[Any]) -> Any:
    """Whether there is NaN in one of several arrays, as bool[]; None where they are of types that have none."""
    found = None
    for x in values:
        aval = get_aval(x)
        if not dtypes.is_inexact(aval.dtype) or not aval.size:
            continue
        here = lax.ne(x, x)
        here = lax.reduce_or(here, tuple(range(aval.ndim))) if aval.ndim else here
        found = here if found is None else lax.bitwise_or(found, here)
    return found


class CheckifyTrace(Trace):
    """Applies checkify rules.

    Attributes:
        checks: where they put what may have failed.
    """

    __slots__ = ("checks",)

    parent: Trace  # never None: this is no staging trace

    interpreter = "checkify"

    def __init__(self, parent: Trace, checks: Checks, debug: Any = None) -> None:
        super().__init__(parent, debug)
        self.checks = checks

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Run the checkify rule one level down, whatever the operands are."""
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


def _check_types(primitive: Primitive, promised: Sequence[ShapedArray], outs: Sequence[Any]) -> None:
    """Hold what a rule gave against what the primitive gives."""
    if len(outs) != len(promised):
        raise mismatch(checkify_rules, primitive, f"{len(outs)} results, the primitive has {len(promised)}")
    for i, (x, aval) in enumerate(zip(outs, promised, strict=True)):
        known = isinstance(x, Tracer) or is_array_like(x)
        got = get_aval(x) if known else None
        if got is None or (got.shape, got.dtype) != (aval.shape, aval.dtype):
            shown = repr(x) if got is None else got.str_short()
            raise mismatch(
                checkify_rules, primitive, f"{shown} as result {i}, where the primitive gives {aval.str_short()}"
            )


def checked_jaxpr(closed: ClosedJaxpr, kinds: Kinds) -> tuple[ClosedJaxpr, ErrorType]:
    """The program with its error: what rules of primitives that hold programs are made of.

    Args:
        closed: a program `a -> b`.
        kinds: kinds of failures that are looked for (`checks.kinds`).

    Returns:
        `a -> (b, leaves of the error)` and the type of the error (`Checks.taken` takes both). It is the program itself
        where nothing in it can fail.
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
    """Register `rule(primitive, *args, checks, *operands, **params)` for the primitive of a name, if there is one."""
    primitive = find_primitive(name)
    if primitive is not None:
        checkify_rules.register(primitive, functools.partial(rule, primitive, *args))


# -- rules that nobody wrote -------------------------------------------------------------------------------------


def _from_call(primitive: Primitive) -> Callable[..., Any] | None:
    """A call of the checked program, of a primitive whose rules `defcall` made."""
    written = [registry.rule_of(primitive) for registry in (impl_rules, abstract_eval_rules, jvp_rules, vmap_rules)]
    if any(rule is None or getattr(rule.fn, "__helper__", None) != "defcall" for rule in written):
        return None
    parameters = inspect.signature(written[0].fn).parameters.values()  # type: ignore[union-attr]
    (param,) = (p.name for p in parameters if p.kind is p.KEYWORD_ONLY)

    def rule(checks: Checks, *operands: Any, **params: Any) -> list[Any]:
        return checks.call(primitive, operands, params, param)

    return rule


def _from_decomposition(primitive: Primitive) -> Callable[..., Any] | None:
    """The decomposition, checked; the primitive itself where nothing in it can fail."""
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
    """The primitive; NaN in its results fails unless there is some in its operands."""

    def rule(checks: Checks, *operands: Any, **params: Any) -> Any:
        checks.keeps_checks(primitive, params)
        out = primitive.bind(*operands, **params)
        checks.no_nan(primitive.name, out if primitive.multiple_results else [out], operands)
        return out

    return rule


checkify_rules.derivations.append(Derivation("call", _from_call, needs="defcall"))
checkify_rules.derivations.append(Derivation("decomposition", _from_decomposition, needs="a decomposition"))
checkify_rules.derivations.append(Derivation("NaN in results", _of_results))
