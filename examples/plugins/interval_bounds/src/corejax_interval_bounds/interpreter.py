"""Interval bound propagation as an interpreter.

    propagate : (a -> b) -> I a -> I b

A value that depends on an interval is boxed with its two bounds; other values are not boxed. A rule maps the operands'
bounds to the results' bounds. Source: R. Moore, Interval Analysis, 1966; for networks S. Gowal et al.,
arXiv:1810.12715.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    RuleRegistry,
    ShapedArray,
    Trace,
    Tracer,
    as_array,
    current_trace,
    get_aval,
    host_value,
    jaxpr_as_fun,
    memoised,
    run_with_trace,
    set_current_trace,
    stage_closed,
    tree,
)
from corejax_interval_bounds import rounding
from corejax_interval_bounds.interval import Bounds
from corejax_interval_bounds.rounding import Rounding

interval_rules = RuleRegistry(
    "interval",
    "interval rule",
    """\
    @interval_rules.register({var})                 # ulps=1: let the result be widened by its rounding error
    def {name}_interval(*operands, **params):       # each has .lower and .upper; .is_point where they are one array
        return Bounds(lower, upper)""",
    required=False,
    flags=("ulps",),
)


@interval_rules.adapt.provide
def _with_rounding(primitive: Primitive, rule: Callable[..., Any], flags: Any) -> Callable[..., Any]:
    """Widen the result of a rule by the `ulps` that the rule was registered with."""
    ulps = flags.get("ulps")
    if not ulps:
        return rule

    @functools.wraps(rule)
    def widened(*operands: Bounds, **params: Any) -> Any:
        out = rule(*operands, **params)
        return [rounding.outward(b, ulps) for b in out] if primitive.multiple_results else rounding.outward(out, ulps)

    return widened


class IntervalTracer(Tracer):
    """A value between two bounds.

    Attributes:
        aval: the type of the value in the program.
        bounds: two arrays of that type.
    """

    __slots__ = ("aval", "bounds")

    def __init__(self, trace: Trace, bounds: Bounds, aval: ShapedArray) -> None:
        self._trace = trace
        self.bounds = bounds
        self.aval = aval

    def concrete(self) -> Any:
        """Return the value if its bounds are known and equal, so that Python control flow works; else None."""
        lower, upper = (b.concrete() if isinstance(b, Tracer) else as_array(b) for b in self.bounds)
        if lower is None or upper is None or not np.array_equal(host_value(lower), host_value(upper)):
            return None
        return lower

    def origin(self) -> str:
        """Return sentences about the propagation that created the value."""
        text = super().origin()
        return f"{text} Only bounds of the value are known, and they differ." if text else ""

    def __repr__(self) -> str:
        return f"IntervalTracer({self.aval.str_short()}, lower={self.bounds.lower!r}, upper={self.bounds.upper!r})"


tree.mark_leaf_types(IntervalTracer)


class IntervalTrace(Trace):
    """A trace that applies interval rules.

    Attributes:
        rounding: "outward" or "nearest".
    """

    __slots__ = ("rounding",)

    parent: Trace  # never None, because this is not a staging trace

    interpreter = "interval"

    def __init__(self, parent: Trace, rounding: Rounding, debug: Any = None) -> None:
        super().__init__(parent, debug)
        self.rounding: Rounding = rounding

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Run the interval rule in the parent trace, or the primitive itself if no operand is an interval."""
        if not any(type(x) is IntervalTracer and x._trace is self for x in args):
            return self.parent.process_primitive(primitive, args, params)
        rule = interval_rules.table.get(primitive) or interval_rules.lookup(primitive)
        avals = primitive.abstract(tuple(get_aval(x) for x in args), params)
        operands = [self.bounds_of(x) for x in args]
        with set_current_trace(self.parent), rounding.rounded(self.rounding):
            out = rule(*operands, **params)
        outs = out if primitive.multiple_results else [out]
        return [self.box(_checked(primitive, b, aval), aval) for b, aval in zip(outs, avals, strict=True)]

    def bounds_of(self, x: Any) -> Bounds:
        """Return the bounds of a value.

        All uses of a tracer have the same `Bounds` object, so that a rule can detect that two operands are the same.
        """
        return x.bounds if type(x) is IntervalTracer and x._trace is self else Bounds.point(x)

    def box(self, bounds: Bounds, aval: ShapedArray) -> Any:
        """Box a value with its bounds; a known value is not boxed."""
        return bounds.lower if bounds.is_point else IntervalTracer(self, bounds, aval)


def _checked(primitive: Primitive, bounds: Any, aval: ShapedArray) -> Bounds:
    if not isinstance(bounds, Bounds):
        raise TypeError(f"interval rule of primitive {primitive.name!r} gives Bounds, got {bounds!r}")
    for name, x in zip(("lower", "upper"), bounds, strict=True):
        got = get_aval(x)
        if got is not aval and (got.shape != aval.shape or got.dtype != aval.dtype):
            raise TypeError(
                f"interval rule of primitive {primitive.name!r}: the {name} bound is {got.str_short()}, the primitive "
                f"gives {aval.str_short()}"
            )
    return bounds


def interval_flat(
    fun: Callable[..., Sequence[Any]], operands: Iterable[Bounds], rounding: Rounding, debug: Any = None
) -> list[Bounds]:
    """Return bounds of the results of a flat function for operands within bounds."""
    trace = IntervalTrace(current_trace(), rounding, debug)
    outs = run_with_trace(trace, fun, [trace.box(b, get_aval(b.lower)) for b in operands])
    return [trace.bounds_of(x) for x in outs]


# -- programs, for the rules of higher-order primitives ----------------------------------------------------------


def packed(bounds: Iterable[Bounds], open_: Iterable[bool]) -> list[Any]:
    """Flatten bounds to a list: lower and upper bound of the flagged operands, one value of the others."""
    return [x for b, is_open in zip(bounds, open_, strict=True) for x in (b if is_open else b[:1])]


def unpacked(values: Iterable[Any], open_: Iterable[bool]) -> list[Bounds]:
    """Undo `packed`."""
    rest = iter(values)
    return [Bounds(next(rest), next(rest)) if is_open else Bounds.point(next(rest)) for is_open in open_]


def open_flags(bounds: Iterable[Bounds]) -> tuple[bool, ...]:
    """Return which operands are intervals."""
    return tuple(not b.is_point for b in bounds)


def interval_jaxpr(
    closed: ClosedJaxpr, open_in: Sequence[bool], instantiate: Sequence[bool] | None = None
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the program that computes bounds.

    Args:
        closed: a program `a -> b`.
        open_in: which arguments are intervals.
        instantiate: flags of outputs that are made intervals even if they do not depend on an interval.

    Returns:
        The program, with `packed` arguments and outputs, and flags of the outputs that are intervals.
    """
    make_open = tuple(instantiate) if instantiate is not None else (False,) * len(closed.out_avals)
    mode = rounding.current()

    def make() -> tuple[ClosedJaxpr, tuple[bool, ...]]:
        open_out: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            debug = closed.jaxpr.debug_info
            outs = interval_flat(jaxpr_as_fun(closed), unpacked(args, open_in), mode, debug)
            open_out.extend(not b.is_point or force for b, force in zip(outs, make_open, strict=True))
            return packed(outs, open_out)

        avals = [a for a, is_open in zip(closed.in_avals, open_in, strict=True) for a in [a] * (1 + is_open)]
        program = stage_closed(flat, avals, closed.jaxpr.debug_info)
        return program, tuple(open_out)

    return memoised(closed, ("interval", tuple(open_in), make_open, mode), make)


# -- derived rules -----------------------------------------------------------------------------------------------


@interval_rules.derivations.from_decomposition()
def _of_decomposition(primitive: Primitive, body: Callable[..., Any]) -> Callable[..., Any]:
    """Derive a rule that runs the primitive's decomposition on bounds."""

    def rule(*operands: Bounds, **params: Any) -> Any:
        outs = interval_flat(functools.partial(body, **params), operands, rounding.current())
        return outs if primitive.multiple_results else outs[0]

    return rule
