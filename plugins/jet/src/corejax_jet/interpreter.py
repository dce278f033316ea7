"""Taylor mode as an interpreter: values with the coefficients of their Taylor series.

    jet : (a -> b) -> (a, [T a]) -> (b, [T b])

A tracer boxes a value and the coefficients `c_1 ... c_K` of `x + c_1 t + c_2 t^2 + ... + c_K t^K`; a rule gives a
primitive's result and its coefficients, which are those of the composition (Griewank and Walther, Evaluating
Derivatives, chapter 13). K is one number for the whole interpretation; what does not change with t is not boxed.
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
from corejax_lax_basic import lax

Series = list[Any] | None  # coefficients, None where all are zero

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
    def aval(self) -> Any:
        """The primal's."""
        return get_aval(self.primal)


tree.mark_leaf_types(JetTracer)


class JetTrace(Trace):
    """Applies jet rules.

    Attributes:
        order: how many coefficients there are.
    """

    __slots__ = ("order",)

    parent: Trace  # never None: this is no staging trace

    interpreter = "jet"

    def __init__(self, parent: Trace, order: int, debug: Any = None) -> None:
        super().__init__(parent, debug)
        self.order = order

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Run the jet rule one level down; where nothing changes with t, just the primitive."""
        primals, series = self.unboxed(args)
        if not any(c is not None for c in series):
            return self.parent.process_primitive(primitive, args, params)  # type: ignore[no-any-return]
        rule = jet_rules.table.get(primitive) or jet_rules.lookup(primitive)
        primals = [as_array(x) for x in primals]
        with set_current_trace(self.parent):
            try:
                out, out_series = rule(primals, series, **params)
            except (TypeError, ValueError) as error:
                if isinstance(error, TypeError) or "unpack" not in str(error):
                    raise
                raise mismatch(jet_rules, primitive, "something else than a result and its series") from error
        if not primitive.multiple_results:
            out, out_series = [out], [out_series]
        return self.boxed(primitive, out, out_series)

    def unboxed(self, values: Sequence[Any]) -> tuple[list[Any], list[Series]]:
        """Primals and series of any values."""
        own = [type(x) is JetTracer and x._trace is self for x in values]
        primals = [x.primal if mine else x for x, mine in zip(values, own, strict=True)]
        return primals, [x.series if mine else None for x, mine in zip(values, own, strict=True)]

    def boxed(self, primitive: Primitive, outs: Sequence[Any], series: Sequence[Series]) -> list[Any]:
        """A rule's results, held to their types."""
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
    """Taylor series through a flat function.

    Args:
        fun: `(*values) -> sequence of values`.
        primals: the point, arrays.
        series: for each its coefficients of t, t^2, ..., `order` of them, or None where they are zero.
        order: K, how many.
        debug: the user's function, for messages.

    Returns:
        The results, and for each its coefficients or None.
    """
    trace = JetTrace(current_trace(), order, debug)
    boxed = [
        x if c is None else JetTracer(trace, as_array(x), [as_array(each) for each in c])
        for x, c in zip(primals, series, strict=True)
    ]
    return trace.unboxed(run_with_trace(trace, fun, boxed))


def real_series(x: Any, series: Series, order: int) -> list[Any]:
    """The coefficients, zeros where there are none."""
    return [zeros_like(x)] * order if series is None else series


def broadcast_terms(primals: Sequence[Any], series: Sequence[Series], shape: tuple[int, ...]) -> list[list[Any]]:
    """For each operand of an elementwise primitive its value and its coefficients, of the result's shape."""
    order = order_of(series)
    return [
        [lax.broadcast_to(each, shape) for each in (x, *real_series(x, c, order))]
        for x, c in zip(primals, series, strict=True)
    ]


def order_of(series: Sequence[Series]) -> int:
    """How many coefficients there are; at least one of the operands has some."""
    return next(len(c) for c in series if c is not None)


def jet_jaxpr(
    closed: ClosedJaxpr, moving: Sequence[bool], order: int, instantiate: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program that gives series as well: what rules of primitives that hold programs are made of.

    Args:
        closed: a program `a -> b`.
        moving: which arguments have series, one flag each.
        order: how many coefficients a series has.
        instantiate: outputs that have one in any case, one flag each or one for all.

    Returns:
        `(a, coefficients of those that have some) -> (b, coefficients of those that have some)`, one argument's or
        output's coefficients behind the other's; and which outputs have some.
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

    return memoised(closed, ("jet", moving, order, flags), make)  # type: ignore[no-any-return]


def split_series(values: Sequence[Any], moving: Sequence[bool], order: int) -> tuple[list[Any], list[Series]]:
    """Values, and the coefficients behind them, of those that have some."""
    count = len(moving)
    primals, rest = list(values[:count]), list(values[count:])
    found = [rest[i : i + order] for i in range(0, len(rest), order)]
    return primals, merge_lists(moving, [None] * (count - len(found)), found)


def joined_series(series: Sequence[Series]) -> list[Any]:
    """All coefficients, one behind the other."""
    return [each for c in series if c is not None for each in c]


# -- rules that nobody wrote -------------------------------------------------------------------------------------


def _from_call(primitive: Primitive) -> Callable[..., Any] | None:
    """A call of the program that gives series, of a primitive whose rules `defcall` made."""
    written = [registry.rule_of(primitive) for registry in (impl_rules, abstract_eval_rules, jvp_rules, vmap_rules)]
    if any(rule is None or getattr(rule.fn, "__helper__", None) != "defcall" for rule in written):
        return None
    parameters = inspect.signature(written[0].fn).parameters.values()  # type: ignore[union-attr]
    (param,) = (p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    return functools.partial(calling, primitive, param)


def for_primitive(name: str, rule: Callable[..., Any], *args: Any) -> None:
    """Register `rule(primitive, *args, primals, series, **params)` for the primitive of a name, if there is one."""
    primitive = find_primitive(name)
    if primitive is not None:
        jet_rules.register(primitive, functools.partial(rule, primitive, *args))


def calling(primitive: Primitive, param: str, primals: Any, series: Any, **params: Any) -> tuple[Any, Any]:
    """The rule of a primitive that applies the program in a parameter once."""
    order = order_of(series)
    program, moving = jet_jaxpr(params[param], [c is not None for c in series], order)
    outs = primitive.bind(*primals, *joined_series(series), **{**params, param: program})
    return split_series(outs, moving, order)


def _from_decomposition(primitive: Primitive) -> Callable[..., Any] | None:
    body = flat_decomposition(primitive)
    if body is None:
        return None

    def rule(primals: Any, series: Any, **params: Any) -> tuple[Any, Any]:
        outs, found = jet_flat(functools.partial(body, **params), primals, series, order_of(series))
        return (outs, found) if primitive.multiple_results else (outs[0], found[0])

    return rule


def _from_jvp(primitive: Primitive) -> Callable[..., Any] | None:
    """Derivatives of derivatives along the curve: right for whatever has a JVP rule; twice the work for each order."""
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
    """The derived rule."""

    def apply(*values: Any) -> list[Any]:
        out = primitive.bind(*values, **params)
        return list(out) if primitive.multiple_results else [out]

    outs, found = nested_jvp(apply, primals, series)
    return (outs, found) if primitive.multiple_results else (outs[0], found[0])


def nested_jvp(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], series: Sequence[Series]
) -> tuple[list[Any], list[Series]]:
    """As `jet_flat`, by derivatives of derivatives of `t -> fun(x + c_1 t + ...)`."""
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
    found: list[Series] = []
    for i, x in enumerate(values[:count]):
        if not dtypes.is_inexact(get_aval(x).dtype):
            found.append(None)
            continue
        found.append([scaled(values[k * count + i], 1 / math.factorial(k)) for k in range(1, order + 1)])
    return values[:count], found


def _polynomial(x: Any, series: Sequence[Any], t: Any) -> Any:
    """`x + c_1 t + c_2 t^2 + ...` by Horner's rule, with a scalar t."""
    out = series[-1]
    for c in (*reversed(series[:-1]), x):
        out = lax.add(c, lax.mul(out, lax.convert_element_type(t, get_aval(x).dtype)))
    return out


def scaled(x: Any, factor: float) -> Any:
    """An array times a number, in its own dtype."""
    return x if factor == 1 else lax.mul(x, factor)


jet_rules.derivations.append(Derivation("call", _from_call, needs="defcall"))
jet_rules.derivations.append(Derivation("decomposition", _from_decomposition, needs="a decomposition"))
jet_rules.derivations.append(Derivation("nested JVP", _from_jvp, needs="a JVP rule"))
