"""Taylor mode as an interpreter: values with the coefficients of their Taylor series.

    jet : (a -> b) -> (a, [T a]) -> (b, [T b])

A tracer boxes a value and the coefficients `c_1 ... c_K` of `x + c_1 t + c_2 t^2 + ... + c_K t^K`. A rule returns a
primitive's result and its coefficients, which are those of the composition (Griewank and Walther, Evaluating
Derivatives, chapter 13). K is the same for the whole interpretation. Values that do not depend on t are not boxed, so
primitives without boxed operands are evaluated one level down, at no extra cost.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    Derivation,
    Primitive,
    RuleRegistry,
    Trace,
    Tracer,
    abstract_eval_rules,
    as_array,
    current_trace,
    dtypes,
    find_primitive,
    flat_decomposition,
    get_aval,
    impl_rules,
    is_array_like,
    jaxpr_as_fun,
    jvp_flat,
    jvp_rules,
    memoised,
    merge_lists,
    mismatch,
    run_with_trace,
    set_current_trace,
    stage_closed,
    tree,
    vmap_rules,
    zeros_like,
)
from corejax.extend.types import ValueType
from corejax_lax_basic import lax

Series = list[Any] | None  # coefficients, or None if all are zero

jet_rules = RuleRegistry(
    "jet",
    "jet rule",
    """\
    @jet_rules.register({var})
    def {name}_jet(primals, series, **params):   # series: coefficients of t, t^2, ...; None where all are zero
        return out, out_series""",
    required=False,
    derived_by=("call", "decomposition", "nested JVP"),
)
__corejax_registers_for_caller__ = True  # the provenance of a rule is its own file


class JetTracer(Tracer):
    """A value with the coefficients of its Taylor series.

    Attributes:
        primal: the value.
        series: the coefficients of t, t^2, ..., of its type.
    """

    __slots__ = ("primal", "series")

    def __init__(self, trace: JetTrace, primal: Any, series: list[Any]) -> None:
        self._trace = trace
        self.primal = primal
        self.series = series

    @property
    def aval(self) -> Any:  # type: ignore[override]  # other tracers store it
        """The abstract value of the primal."""
        return get_aval(self.primal)


tree.mark_leaf_types(JetTracer)


class JetTrace(Trace):
    """The interpreter that applies jet rules.

    Attributes:
        order: the number of coefficients.
    """

    __slots__ = ("order",)

    parent: Trace  # never None: this is not a staging trace

    interpreter = "jet"

    def __init__(self, parent: Trace, order: int, debug: Any = None) -> None:
        super().__init__(parent, debug)
        self.order = order

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Apply the jet rule one level down; if no operand depends on t, only the primitive."""
        primals, series = self.unbox(args)
        if not any(c is not None for c in series):
            return self.parent.process_primitive(primitive, args, params)
        rule = jet_rules.table.get(primitive) or jet_rules.lookup(primitive)
        primals = [as_array(x) for x in primals]
        with set_current_trace(self.parent):
            try:
                out, out_series = rule(primals, series, **params)
            except (TypeError, ValueError) as error:
                if isinstance(error, TypeError) or "unpack" not in str(error):
                    raise
                raise mismatch(jet_rules, primitive, "something other than a result and its series") from error
        if not primitive.multiple_results:
            out, out_series = [out], [out_series]
        return self.box(primitive, out, out_series)

    def unbox(self, values: Sequence[Any]) -> tuple[list[Any], list[Series]]:
        """Split values into primals and series."""
        own = [type(x) is JetTracer and x._trace is self for x in values]
        primals = [x.primal if mine else x for x, mine in zip(values, own, strict=True)]
        return primals, [x.series if mine else None for x, mine in zip(values, own, strict=True)]

    def box(self, primitive: Primitive, outs: Sequence[Any], series: Sequence[Series]) -> list[Any]:
        """Box the results of a rule, after a check of their types."""
        if len(outs) != len(series):
            raise mismatch(jet_rules, primitive, f"{len(outs)} results and {len(series)} series")
        return [
            x if c is None else JetTracer(self, x, self._checked(primitive, x, c))
            for x, c in zip(outs, series, strict=True)
        ]

    def _checked(self, primitive: Primitive, x: Any, series: Sequence[Any]) -> list[Any]:
        aval = get_aval(x)
        if not isinstance(series, list | tuple) or len(series) != self.order:
            count = len(series) if isinstance(series, list | tuple) else repr(series)
            raise mismatch(jet_rules, primitive, f"{count} coefficients, of a series of order {self.order}")
        for k, c in enumerate(series, 1):
            got = get_aval(c) if isinstance(c, Tracer) or is_array_like(c) else None
            if got is None or (got.shape, got.dtype) != (aval.shape, aval.dtype):
                shown = repr(c) if got is None else got.str_short()
                raise mismatch(jet_rules, primitive, f"{shown} as coefficient {k} of a result {aval.str_short()}")
        return list(series)


def jet_flat(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], series: Sequence[Series], order: int, debug: Any = None
) -> tuple[list[Any], list[Series]]:
    """Propagate Taylor series through a flat function.

    Args:
        fun: the function `(*values) -> sequence of values`.
        primals: the point of expansion, arrays.
        series: for each primal its coefficients of t, t^2, ..., `order` of them, or None if all are zero.
        order: K, the number of coefficients.
        debug: the user's function, for messages.

    Returns:
        The results, and for each result its coefficients or None.
    """
    trace = JetTrace(current_trace(), order, debug)
    boxed = [
        x if c is None else JetTracer(trace, as_array(x), [as_array(each) for each in c])
        for x, c in zip(primals, series, strict=True)
    ]
    return trace.unbox(run_with_trace(trace, fun, boxed))


def real_series(x: Any, series: Series, order: int) -> list[Any]:
    """Return the coefficients, zeros if the series is None."""
    return [zeros_like(x)] * order if series is None else series


def broadcast_terms(primals: Sequence[Any], series: Sequence[Series], shape: tuple[int, ...]) -> list[list[Any]]:
    """Return the value and coefficients of each operand of an element-wise primitive, in the result's shape."""
    order = order_of(series)
    return [
        [lax.broadcast_to(each, shape) for each in (x, *real_series(x, c, order))]
        for x, c in zip(primals, series, strict=True)
    ]


def order_of(series: Sequence[Series]) -> int:
    """Return the number of coefficients; at least one operand must have some."""
    return next(len(c) for c in series if c is not None)


def jet_jaxpr(
    closed: ClosedJaxpr, moving: Sequence[bool], order: int, instantiate: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the program that propagates series as well; rules of primitives with programs are built on it.

    Args:
        closed: a program `a -> b`.
        moving: a flag for each argument: whether it has a series.
        order: the number of coefficients of a series.
        instantiate: a flag for each output, or one for all: whether it has a series even if this is zero.

    Returns:
        A program `(a, coefficients of a) -> (b, coefficients of b)`, where the coefficients of all arguments or
        outputs with a series are concatenated; and the flags of the outputs that have a series.
    """
    moving = tuple(moving)
    flags = (instantiate,) * len(closed.out_avals) if isinstance(instantiate, bool) else tuple(instantiate)

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        moving_out: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            primals, series = split_series(args, moving, order)
            outs, series_out = jet_flat(jaxpr_as_fun(closed), primals, series, order, closed.jaxpr.debug_info)
            for i, (x, real) in enumerate(zip(outs, flags, strict=True)):
                if real and dtypes.is_inexact(get_aval(x).dtype):
                    series_out[i] = real_series(x, series_out[i], order)
            moving_out.extend(c is not None for c in series_out)
            return [*outs, *joined_series(series_out)]

        avals = [a.strip_weak_type() for a, m in zip(closed.in_avals, moving, strict=True) if m for _ in range(order)]
        return stage_closed(flat, [*closed.in_avals, *avals], closed.jaxpr.debug_info), moving_out

    return memoised(closed, ("jet", moving, order, flags), make)


def split_series(values: Sequence[Any], moving: Sequence[bool], order: int) -> tuple[list[Any], list[Series]]:
    """Split values from the coefficients that follow them."""
    count = len(moving)
    primals, rest = list(values[:count]), list(values[count:])
    groups = [rest[i : i + order] for i in range(0, len(rest), order)]
    return primals, merge_lists(moving, [None] * (count - len(groups)), groups)


def joined_series(series: Sequence[Series]) -> list[Any]:
    """Concatenate all coefficients."""
    return [each for c in series if c is not None for each in c]


# -- derived rules --------------------------------------------------------------------------------------


def _from_call(primitive: Primitive) -> Callable[..., Any] | None:
    """Derive the rule of a primitive that `defcall` defined: call the program that propagates series."""
    rules = [registry.rule_of(primitive) for registry in (impl_rules, abstract_eval_rules, jvp_rules, vmap_rules)]
    written = [rule.fn for rule in rules if rule is not None and getattr(rule.fn, "__helper__", None) == "defcall"]
    if len(written) < len(rules):
        return None
    parameters = inspect.signature(written[0]).parameters.values()
    (param,) = (p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    return functools.partial(calling, primitive, param)


def for_primitive(name: str, rule: Callable[..., Any], *args: Any) -> None:
    """Register `rule(primitive, *args, primals, series, **params)` for the primitive with a name, if it exists."""
    primitive = find_primitive(name)
    if primitive is not None:
        jet_rules.register(primitive, functools.partial(rule, primitive, *args))


def calling(primitive: Primitive, param: str, primals: Any, series: Any, **params: Any) -> tuple[Any, Any]:
    """Apply the rule of a primitive that calls the program in one of its parameters once."""
    order = order_of(series)
    program, moving = jet_jaxpr(params[param], [c is not None for c in series], order)
    outs = primitive.bind(*primals, *joined_series(series), **{**params, param: program})
    return split_series(outs, moving, order)


def _from_decomposition(primitive: Primitive) -> Callable[..., Any] | None:
    body = flat_decomposition(primitive)
    if body is None or _has_its_own_derivative(primitive):
        return None

    def rule(primals: Any, series: Any, **params: Any) -> tuple[Any, Any]:
        outs, out_series = jet_flat(functools.partial(body, **params), primals, series, order_of(series))
        return (outs, out_series) if primitive.multiple_results else (outs[0], out_series[0])

    return rule


def _has_its_own_derivative(primitive: Primitive) -> bool:
    """Return whether the JVP rule may be another function than the derivative of the decomposition, on purpose."""
    return jvp_rules.is_written(primitive) and "higher_order" not in primitive.tags


def _from_jvp(primitive: Primitive) -> Callable[..., Any] | None:
    """Derive the rule by nested JVPs along the curve.

    The rule is correct for every primitive with a JVP rule; each order doubles the work.
    """
    if (
        not jvp_rules.is_written(primitive)
        and jvp_rules.can_derive(primitive) is None
        and "higher_order" not in primitive.tags
    ):
        return None

    def rule(primals: Any, series: Any, **params: Any) -> tuple[Any, Any]:
        return by_nested_jvp(primitive, primals, series, params)

    return rule


def by_nested_jvp(primitive: Primitive, primals: Any, series: Any, params: dict[str, Any]) -> tuple[Any, Any]:
    """Propagate series through a primitive by nested JVPs."""

    def apply(*values: Any) -> list[Any]:
        out = primitive.bind(*values, **params)
        return list(out) if primitive.multiple_results else [out]

    outs, out_series = nested_jvp(apply, primals, series)
    return (outs, out_series) if primitive.multiple_results else (outs[0], out_series[0])


def nested_jvp(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], series: Sequence[Series]
) -> tuple[list[Any], list[Series]]:
    """Compute the result of `jet_flat` by nested derivatives of `t -> fun(x + c_1 t + ...)`."""
    order = order_of(series)
    dtype = next(dtypes.real_dtype_of(get_aval(x).dtype) for x, c in zip(primals, series, strict=True) if c is not None)
    counted: list[int] = []

    def along(t: Any) -> list[Any]:
        values = [x if c is None else _polynomial(x, c, t) for x, c in zip(primals, series, strict=True)]
        outs = list(fun(*values))
        counted.append(len(outs))
        return outs

    def with_derivative(inner: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def more(t: Any) -> list[Any]:
            outs, tangents = jvp_flat(inner, [t], [np.ones((), dtype)])
            latest = zip(outs[-counted[-1] :], tangents[-counted[-1] :], strict=True)
            return [*outs, *(zeros_like(x) if dx is None else dx for x, dx in latest)]

        return more

    nested: Callable[..., list[Any]] = along
    for _ in range(order):
        nested = with_derivative(nested)
    values = nested(as_array(np.zeros((), dtype)))
    count = counted[-1]
    out_series: list[Series] = []
    for i, x in enumerate(values[:count]):
        if not dtypes.is_inexact(get_aval(x).dtype):
            out_series.append(None)
            continue
        out_series.append([scaled(values[k * count + i], 1 / math.factorial(k)) for k in range(1, order + 1)])
    return values[:count], out_series


def _polynomial(x: Any, series: Sequence[Any], t: Any) -> Any:
    """Evaluate `x + c_1 t + c_2 t^2 + ...` by Horner's rule, for a scalar t; for a value of a value type, by parts."""
    aval = get_aval(x)
    if isinstance(aval, ValueType):
        parts = zip(*map(lax.unpack, (x, *series)), strict=True)
        return lax.pack(aval, *(_polynomial(part, terms, t) for part, *terms in parts))
    out = series[-1]
    for c in (*reversed(series[:-1]), x):
        out = lax.add(c, lax.mul(out, lax.convert_element_type(t, get_aval(x).dtype)))
    return out


def scaled(x: Any, factor: float) -> Any:
    """Multiply an array by a number, in the dtype of the array; for a value of a value type, its parts."""
    aval = get_aval(x)
    if isinstance(aval, ValueType):
        return lax.pack(aval, *(scaled(part, factor) for part in lax.unpack(x)))
    return x if factor == 1 else lax.mul(x, factor)


jet_rules.derivations.append(Derivation("call", _from_call, needs="defcall"))
jet_rules.derivations.append(
    Derivation("decomposition", _from_decomposition, needs="a decomposition, and no JVP rule of its own")
)
jet_rules.derivations.append(Derivation("nested JVP", _from_jvp, needs="a JVP rule"))
