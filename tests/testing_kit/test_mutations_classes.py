"""The kit finds mistakes that examples and ordinary numbers hide: of each class wrong rules of several primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax
import corejax.lax as lax
import corejax.numpy as jnp
from corejax.extend import (
    ClosedJaxpr,
    Example,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    impl_rules,
    is_undef_primal,
    jvp_rules,
    partial_eval_jaxpr_rules,
    partial_eval_rules,
    primitives,
    transpose_rules,
    vmap_rules,
    xla_translations,
)
from corejax_testing import verify
from tests.testing_kit import toys

corejax.plugins.load_everything()
pytestmark = pytest.mark.usefixtures("nothing_is_left")

F32 = np.dtype(np.float32)


def typed(*shape: int, dtype: Any = F32) -> ShapedArray:
    return ShapedArray(shape, np.dtype(dtype))


class Mistake(NamedTuple):
    """A first-party primitive with a rule changed, and the check that has to fail by it."""

    primitive: str
    registry: Any
    change: Callable[[Callable[..., Any]], Callable[..., Any]]
    check: str
    examples: Any = None


def wrong(mistake: Mistake) -> Primitive:
    primitive = primitives[mistake.primitive]
    before = mistake.registry.rule_of(primitive)
    mistake.registry.register(primitive, mistake.change(before.fn), override=True, **before.flags)
    return primitive


# -- derivatives of large, and of saturating operands --------------------------------------------------------------


def tangent_changed(where: Callable[..., Any], change: Callable[..., Any]) -> Any:
    """A jvp rule whose tangent is changed where a condition on the operands holds."""

    def changed(rule: Any) -> Any:
        def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
            out, tangent = rule(primals, tangents, **params)
            if tangent is None or tangent.dtype.kind == "c":
                return out, tangent
            return out, jnp.where(where(*primals), change(tangent, *primals).astype(tangent.dtype), tangent)

        return jvp

    return changed


def beyond(limit: float) -> Any:
    return lambda x, *rest: jnp.abs(x) > np.asarray(limit, x.dtype)


def of_row(limit: float) -> Any:
    return lambda x: jnp.max(jnp.abs(x)) > np.asarray(limit, x.dtype)


def doubled(t: Any, *primals: Any) -> Any:
    return t * 2


LARGE = {
    "sin beyond 10000": Mistake("sin", jvp_rules, tangent_changed(beyond(1e4), doubled), "points"),
    "exp beyond 30": Mistake("exp", jvp_rules, tangent_changed(beyond(30), doubled), "points"),
    "log beyond 10000": Mistake("log", jvp_rules, tangent_changed(beyond(1e4), lambda t, x: t * 0), "points"),
    "logistic is flat below -15": Mistake(
        "logistic", jvp_rules, tangent_changed(lambda x: x < -15, lambda t, x: t * 0), "points"
    ),
    "tanh is flat beyond 5": Mistake("tanh", jvp_rules, tangent_changed(beyond(5), lambda t, x: t * 0), "points"),
    "atan2 beyond 2000": Mistake("atan2", jvp_rules, tangent_changed(beyond(2000), doubled), "points"),
    "cumlogsumexp beyond 30": Mistake(
        "cumlogsumexp", jvp_rules,
        lambda rule: lambda p, t, **params: (rule(p, t, **params)[0], jnp.where(
            jnp.max(jnp.abs(p[0])) > 30, 2, 1).astype(t[0].dtype) * rule(p, t, **params)[1]), "points",
    ),
}  # fmt: skip

# -- axes of equal lengths ---------------------------------------------------------------------------------------------


def same_permutation(rule: Any) -> Any:
    """The inverse only if shapes need it."""

    def transpose(ct: Any, x: Any, *, permutation: Any) -> Any:
        if tuple(ct.shape[p] for p in permutation) == x.aval.shape:
            return [lax.transpose_p.bind(ct, permutation=permutation)]
        return rule(ct, x, permutation=permutation)

    return transpose


def next_order_of_a_swap(rule: Any) -> Any:
    """Wrong only for permutations of three axes that are their own inverses."""

    def transpose(ct: Any, x: Any, *, permutation: Any) -> Any:
        own = len(permutation) > 2 and tuple(np.argsort(permutation)) == tuple(permutation)
        moved = permutation != tuple(range(len(permutation)))
        if own and moved and len(set(ct.shape)) == 1:
            return [lax.transpose_p.bind(ct, permutation=(*permutation[1:], permutation[0]))]
        return rule(ct, x, permutation=permutation)

    return transpose


def inverse_if_it_fits(rule: Any) -> Any:
    def translation(ctx: Any, in_avals: Any, in_vals: Any, *, permutation: Any) -> Any:
        shape, inverse = in_avals[0].shape, tuple(int(k) for k in np.argsort(permutation))
        fits = tuple(shape[p] for p in inverse) == tuple(shape[p] for p in permutation)
        return rule(ctx, in_avals, in_vals, permutation=inverse if fits else permutation)

    return translation


def inverse_batched(rule: Any) -> Any:
    def vmap(axis_size: int, vals: Any, dims: Any, *, permutation: Any) -> Any:
        lengths = {n for i, n in enumerate(vals[0].shape) if i != dims[0]}
        alike = len(lengths) == 1
        return rule(
            axis_size, vals, dims, permutation=tuple(map(int, np.argsort(permutation))) if alike else permutation
        )

    return vmap


def batch_by_length(rule: Any) -> Any:
    """Takes the first axis as long as the batch for the batch."""

    def vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        return rule(axis_size, vals, [vals[0].shape.index(axis_size)], **params)

    return vmap


def wrong_for_one(rule: Any) -> Any:
    def vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        out, dim = rule(axis_size, vals, dims, **params)
        return (lax.neg(out) if axis_size == 1 else out), dim

    return vmap


def contracted_in_order(rule: Any) -> Any:
    """The contracted axes of the second operand in their order there, if lengths allow."""

    def sorted_numbers(numbers: Any, x: Any, y: Any) -> Any:
        (a, b), batch = numbers
        other = tuple(sorted(b))
        return ((a, other), batch) if [x.shape[i] for i in a] == [y.shape[i] for i in other] else numbers

    def jvp(primals: Any, tangents: Any, *, dimension_numbers: Any, **params: Any) -> Any:
        out = rule(primals, tangents, dimension_numbers=dimension_numbers, **params)[0]
        other = sorted_numbers(dimension_numbers, *primals)
        return out, rule(primals, tangents, dimension_numbers=other, **params)[1]

    return jvp


def contraction_translated(rule: Any) -> Any:
    def translation(ctx: Any, in_avals: Any, in_vals: Any, *, dimension_numbers: Any, **params: Any) -> Any:
        (a, b), batch = dimension_numbers
        alike = len({n for x in in_avals for n in x.shape}) == 1
        return rule(ctx, in_avals, in_vals, dimension_numbers=((a, tuple(sorted(b)) if alike else b), batch), **params)

    return translation


PAIRS = [
    Example((typed(3, 3, 3), typed(3, 3, 3)), {"dimension_numbers": (((0, 1), (0, 1)), ((), ())),
                                               "preferred_element_type": F32})
]  # fmt: skip
SWAP = [Example((typed(2, 3),), {"permutation": (1, 0)})]
EQUAL = {
    "transpose with the same permutation": Mistake("transpose", transpose_rules, same_permutation, "vjp"),
    "and examples of two axes only": Mistake("transpose", transpose_rules, same_permutation, "vjp", SWAP),
    "transpose of a swap": Mistake("transpose", transpose_rules, next_order_of_a_swap, "vjp"),
    "translation with the inverse": Mistake("transpose", xla_translations, inverse_if_it_fits, "extremes"),
    "batched with the inverse": Mistake("transpose", vmap_rules, inverse_batched, "vmap"),
    "batch axis by its length": Mistake("cumsum", vmap_rules, batch_by_length, "vmap"),
    "batch axis by its length: rev": Mistake("rev", vmap_rules, batch_by_length, "vmap"),
    "batch of one": Mistake("reduce_sum", vmap_rules, wrong_for_one, "vmap"),
    "batch of one: concatenate": Mistake("concatenate", vmap_rules, wrong_for_one, "vmap"),
    "tangent of a contraction": Mistake("dot_general", jvp_rules, contracted_in_order, "jvp"),
    "and examples in order": Mistake("dot_general", jvp_rules, contracted_in_order, "jvp", PAIRS),
    "contraction translated": Mistake("dot_general", xla_translations, contraction_translated, "extremes", PAIRS),
}

# -- starts that are out of bounds, or unsigned --------------------------------------------------------------------


def wrapped(rule: Any) -> Any:
    """Cotangents of a slice go where a negative start would be counted from the end."""

    def transpose(ct: Any, x: Any, *starts: Any, **params: Any) -> Any:
        if not is_undef_primal(x):
            return rule(ct, x, *starts, **params)
        return rule(ct, x, *(jnp.where(s < 0, s + n, s) for s, n in zip(starts, x.aval.shape, strict=True)), **params)

    return transpose


def update_wrapped(rule: Any) -> Any:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        x, update, *starts = primals
        starts = [jnp.where(s >= n, s - n, s) for s, n in zip(starts, x.shape, strict=True)]
        return rule(primals, tangents, **params)[0], rule([x, update, *starts], tangents, **params)[1]

    return jvp


def read_as_signed(rule: Any) -> Any:
    def translation(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        signed = {"uint8": "int8", "uint32": "int32", "int64": "int32"}
        read = [v if a.shape else ctx.convert(v, np.dtype(signed.get(a.dtype.name, a.dtype)))
                for a, v in zip(in_avals, in_vals, strict=True)]  # fmt: skip
        return rule(ctx, [v.aval for v in read], read, **params)

    return translation


def batched_as_signed(rule: Any) -> Any:
    def vmap(axis_size: int, vals: Any, dims: Any, **params: Any) -> Any:
        vals = [v.astype(np.int8) if v.dtype == np.uint8 else v for v in vals]
        return rule(axis_size, vals, dims, **params)

    return vmap


ONE_START = [Example((typed(5), np.asarray(1, np.int32)), {"slice_sizes": (2,)})]
STARTS = {
    "cotangents wrapped": Mistake("dynamic_slice", transpose_rules, wrapped, "indices"),
    "and one start given": Mistake("dynamic_slice", transpose_rules, wrapped, "indices", ONE_START),
    "tangents of an update wrapped": Mistake("dynamic_update_slice", jvp_rules, update_wrapped, "indices"),
    "unsigned read as signed": Mistake("dynamic_slice", xla_translations, read_as_signed, "indices", ONE_START),
    "unsigned read as signed: update": Mistake("dynamic_update_slice", xla_translations, read_as_signed, "indices"),
    "unsigned batched as signed": Mistake("dynamic_slice", vmap_rules, batched_as_signed, "indices"),
}

# -- ties --------------------------------------------------------------------------------------------------------------


def whole_if_alone(rule: Any) -> Any:
    """Of two that are equal one has the whole tangent, if the other has none."""

    def jvp(primals: Any, tangents: Any) -> Any:
        out, tangent = rule(primals, tangents)
        if None in tangents and tangent is not None:
            tangent = jnp.where(primals[0] == primals[1], tangent * 2, tangent)
        return out, tangent

    return jvp


def none_if_alone(rule: Any) -> Any:
    def jvp(primals: Any, tangents: Any) -> Any:
        out, tangent = rule(primals, tangents)
        if tangents[1] is None and tangent is not None:
            tangent = jnp.where(primals[0] == primals[1], tangent * 0, tangent)
        return out, tangent

    return jvp


TIES = {
    "max, whole": Mistake("max", jvp_rules, whole_if_alone, "points"),
    "min, whole": Mistake("min", jvp_rules, whole_if_alone, "points"),
    "max, none": Mistake("max", jvp_rules, none_if_alone, "points"),
    "min, none": Mistake("min", jvp_rules, none_if_alone, "points"),
}

# -- weak types of what moves elements -----------------------------------------------------------------------------


def strong(rule: Any) -> Any:
    return lambda *avals, **params: rule(*avals, **params).update(weak_type=False)


def weak_by_any(rule: Any) -> Any:
    def aval(*avals: Any, **params: Any) -> Any:
        return rule(*avals, **params).update(weak_type=any(a.weak_type for a in avals if a.dtype == avals[0].dtype))

    return aval


def weak_by_first(rule: Any) -> Any:
    return lambda *avals, **params: rule(*avals, **params).update(weak_type=avals[0].weak_type)


WEAK = {
    **{f"lost: {name}": Mistake(name, abstract_eval_rules, strong, "weak_types")
       for name in ("transpose", "concatenate", "rev", "dynamic_slice")},
    **{f"gained: {name}": Mistake(name, abstract_eval_rules, weak_by_any, "weak_types")
       for name in ("concatenate", "dynamic_update_slice")},
    "of the first only": Mistake("concatenate", abstract_eval_rules, weak_by_first, "weak_types"),
}  # fmt: skip

# -- translations ------------------------------------------------------------------------------------------------------


def without_negative_zero(rule: Any) -> Any:
    def translation(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        out = rule(ctx, in_avals, in_vals, **params)
        aval = out.aval.strip_weak_type()
        if aval.dtype.kind != "f":
            return out
        zero, equal = ctx.full(aval, 0.0), "comparison_direction = #stablehlo<comparison_direction EQ>"
        is_zero = ctx.op("compare", out, zero, out=aval.update(dtype=np.dtype(bool)), attrs=equal)
        return ctx.op("select", is_zero, zero, out, out=aval)

    return translation


def product_of_zeros(rule: Any) -> Any:
    """0.0 times -0.0 is 0.0."""

    def translation(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        out, aval = rule(ctx, in_avals, in_vals), in_avals[0].strip_weak_type()
        if aval.dtype.kind != "f":
            return out
        zero, equal = ctx.full(aval, 0.0), "comparison_direction = #stablehlo<comparison_direction EQ>"
        boolean = aval.update(dtype=np.dtype(bool))
        both = [ctx.op("compare", v, zero, out=boolean, attrs=equal) for v in in_vals]
        return ctx.op("select", ctx.op("and", *both, out=boolean), zero, out, out=aval)

    return translation


def by_way_of_int32(rule: Any) -> Any:
    """Floating-point numbers go to bytes by way of int32, which wraps."""

    def translation(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        if in_avals[0].dtype.kind != "f" or params["new_dtype"].name not in ("uint8", "int8", "uint16"):
            return rule(ctx, in_avals, in_vals, **params)
        return ctx.convert(ctx.convert(in_vals[0], np.dtype(np.int32)), params["new_dtype"])

    return translation


def negative_is_wrapped(rule: Any) -> Any:
    def translation(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        if in_avals[0].dtype.kind != "f" or params["new_dtype"].kind != "u":
            return rule(ctx, in_avals, in_vals, **params)
        return ctx.convert(ctx.convert(in_vals[0], np.dtype(np.int64)), params["new_dtype"])

    return translation


def rounded_at_each_step(rule: Any) -> Any:
    """A sum whose terms are added in bfloat16."""

    def translation(ctx: Any, in_avals: Any, in_vals: Any, *, axes: Any) -> Any:
        (x,), (aval,) = in_vals, in_avals
        if aval.dtype != np.float16:
            return rule(ctx, in_avals, in_vals, axes=axes)
        out = aval.update(shape=tuple(n for i, n in enumerate(aval.shape) if i not in axes))
        scalar, bits = out.update(shape=()), "exponent_bits = 8 : i32, mantissa_bits = 7 : i32"

        def body(c: Any, a: Any, b: Any) -> Any:
            return c.op("reduce_precision", c.op("add", a, b, out=scalar), out=scalar, attrs=bits)

        region = ctx.region([scalar, scalar], body)
        dimensions = f"dimensions = array<i64: {', '.join(map(str, axes))}>"
        zero = ctx.constant(np.zeros((), np.float16))
        return ctx.op("reduce", x, zero, out=out, attrs=dimensions, regions=[region])

    return translation


def short_by_a_tenth(rule: Any) -> Any:
    """Long sums in 16 bits are too small, as those are that are rounded at each step."""

    def translation(ctx: Any, in_avals: Any, in_vals: Any, **params: Any) -> Any:
        out = rule(ctx, in_avals, in_vals, **params)
        if out.aval.dtype.itemsize != 2 or max(n for a in in_avals for n in a.shape) < 500:
            return out
        return ctx.op("multiply", out, ctx.full(out.aval, 0.9), out=out.aval)

    return translation


TRANSLATIONS = {
    **{f"sign of zero: {name}": Mistake(name, xla_translations, without_negative_zero, "extremes")
       for name in ("transpose", "pad", "cummax")},
    "sign of zero times -0": Mistake("mul", xla_translations, product_of_zeros, "special"),
    "float to bytes by way of int32": Mistake("convert_element_type", xla_translations, by_way_of_int32, "conversions"),
    "negative float to unsigned": Mistake(
        "convert_element_type", xla_translations, negative_is_wrapped, "conversions"
    ),
    "16 bits: reduce_sum": Mistake("reduce_sum", xla_translations, rounded_at_each_step, "conversions"),
    **{f"16 bits: {name}": Mistake(name, xla_translations, short_by_a_tenth, "conversions")
       for name in ("dot_general", "cumsum")},
}  # fmt: skip

# -- effects of what is known and has no results -----------------------------------------------------------------


def without_known_effects(rule: Any) -> Any:
    """A known equation without results is taken for useless."""

    def split(unknowns: Any, eqn: Any) -> Any:
        known, unknown, unknowns_out, residuals = rule(unknowns, eqn)
        return (known if known is not None and known.outvars else None), unknown, unknowns_out, residuals

    return split


def pure_known(rule: Any) -> Any:
    """What is known is trimmed to its results, and run only for these."""

    def partial_eval(trace: Any, args: Any, **params: Any) -> Any:
        if any(trace.is_unknown(x) for x in args):
            params = {k: _trimmed(v) if isinstance(v, ClosedJaxpr) else v for k, v in params.items()}
        return rule(trace, args, **params)

    return partial_eval


def _trimmed(program: ClosedJaxpr) -> ClosedJaxpr:
    eqns = [eqn for eqn in program.jaxpr.eqns if eqn.outvars]
    jaxpr = type(program.jaxpr)(program.jaxpr.constvars, program.jaxpr.invars, eqns, program.jaxpr.outvars)
    return ClosedJaxpr(jaxpr, program.consts)


KNOWN_EFFECTS = {
    **{f"split: {name}": Mistake(name, partial_eval_jaxpr_rules, without_known_effects, "kept_effects")
       for name in ("scan", "remat2", "xla_call")},
    **{f"traced: {name}": Mistake(name, partial_eval_rules, pure_known, "kept_effects")
       for name in ("scan", "remat2", "xla_call")},
}  # fmt: skip

# -- impl is a function of numbers ---------------------------------------------------------------------------------


def in_memory_order(rule: Any) -> Any:
    """Elements as they lie in memory."""
    return lambda x, **params: rule(np.frombuffer(x.tobytes("A"), x.dtype).reshape(x.shape), **params)


IMPL = {
    "order of memory: cumsum": Mistake("cumsum", impl_rules, in_memory_order, "pure"),
    "order of memory: reduce_sum": Mistake("reduce_sum", impl_rules, in_memory_order, "pure"),
}

CLASSES = {
    "large": LARGE,
    "equal": EQUAL,
    "starts": STARTS,
    "ties": TIES,
    "weak": WEAK,
    "translations": TRANSLATIONS,
    "known effects": KNOWN_EFFECTS,
    "impl": IMPL,
}
LONG = ("extremes", "conversions")  # these checks compile much: of their mistakes two are in the usual run
QUICK = ("sign of zero: transpose", "16 bits: reduce_sum")


def _case(kind: str, name: str) -> Any:
    slow = CLASSES[kind][name].check in LONG and name not in QUICK
    return pytest.param(kind, name, marks=[pytest.mark.slow] if slow else [])


CASES = [_case(kind, name) for kind, mistakes in CLASSES.items() for name in mistakes]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_mistake_is_caught(kind: str, name: str) -> None:
    mistake = CLASSES[kind][name]
    primitive = wrong(mistake)
    (result,) = verify(primitive, mistake.examples, checks=[mistake.check], quick=True)
    assert (result.status, result.rule) == ("failed", mistake.registry.kind), result.report()


# -- identity and memory ---------------------------------------------------------------------------------------------


def _by_identity() -> Any:
    known: dict[int, Any] = {}

    def impl(x: Any) -> Any:
        return known.setdefault(id(x), np.sin(x))

    return impl


def _by_place() -> Any:
    known: dict[Any, Any] = {}

    def impl(x: Any) -> Any:
        key = (x.__array_interface__["data"], x.shape, x.dtype)
        return known.setdefault(key, np.sin(x))

    return impl


def _by_count() -> Any:
    calls: list[None] = []

    def impl(x: Any) -> Any:
        calls.append(None)
        return np.sin(x) if len(calls) % 7 else np.cos(x)

    return impl


@pytest.mark.parametrize("make", [_by_identity, _by_place, _by_count])
def test_impl_that_is_no_function_of_its_operands(make: Any) -> None:
    primitive = Primitive("toy.stale", impl=make(), abstract_eval=toys.same, tags=("elementwise",))
    examples = [Example([typed(3)], reference=np.sin)]
    results = list(verify(primitive, examples, checks=["types", "values", "pure"]))
    assert any(r.failed and r.rule == "impl" for r in results), [r.report() for r in results]


def test_what_fails_once_is_reported_and_does_not_raise() -> None:
    seen: set[Any] = set()

    def impl(x: Any) -> Any:
        first = x.shape not in seen
        seen.add(x.shape)
        return np.cos(x) if first and x.ndim == 2 else np.sin(x)

    primitive = Primitive("toy.once", impl=impl, abstract_eval=toys.same, tags=("elementwise",))
    (result,) = verify(primitive, [Example([typed(3)], reference=np.sin)], checks=["values"])
    assert result.failed and result.rule == "impl" and "but not again" in result.message


# -- infinities that spread otherwise ----------------------------------------------------------------------------------


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_infinities_may_go_elsewhere_if_the_author_says_so(finite: bool, factor: float) -> None:
    """A sum by a matrix product has NaN where zeros meet infinities."""

    def by_product(x: Any) -> Any:
        return lax.mul(lax.dot(np.tri(3, dtype=x.dtype), x), np.asarray(factor, x.dtype))

    def aval(x: ShapedArray) -> ShapedArray:
        if x.shape != (3,) or x.dtype != F32:
            raise TypeError(f"toy.running takes 3 numbers of float32, got {x.str_short()}")
        return x

    primitive = Primitive("toy.running", impl=np.cumsum, abstract_eval=aval, decomposition=by_product)
    (result,) = verify(primitive, [Example([typed(3)], finite=finite)], checks=["extremes"], quick=True)
    assert result.failed is (factor != 1 or not finite), result.report()


@pytest.mark.parametrize("finite", [False, True])
def test_elementwise_infinities_if_the_author_says_so(finite: bool) -> None:
    primitive = Primitive(
        "toy.cube", impl=lambda x: x * x * x, abstract_eval=toys.same, tags=("elementwise",),
        decomposition=lambda x: jnp.where(jnp.isinf(x), jnp.nan, x * x * x).astype(x.dtype),
    )  # fmt: skip
    (result,) = verify(primitive, [Example([typed(3)], finite=finite)], checks=["special"], quick=True)
    assert result.failed is not finite, result.report()
