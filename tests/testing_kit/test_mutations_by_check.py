"""Mistakes that only one check can see, of five kinds each: cost, repetition, arguments, effects, empty arrays, ..."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.base.tables import restore, snapshot
from corejax.extend import Example, Primitive, ShapedArray, primitives
from corejax_testing import verify
from tests.testing_kit import toys
from tests.testing_kit.toys import EXAMPLES, toy

Mistakes = dict[str, tuple[str, Callable[..., Any]]]
_seen: list[Any] = []
_count = itertools.count()


def _mulsin(x: Any, y: Any) -> Any:
    return primitives["toy.mulsin"].bind(x, y)


# -- cost ----------------------------------------------------------------------------------------------------------


def _looking_back(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that goes through everything that it has been asked before."""

    def slow(*args: Any, **params: Any) -> Any:
        _seen.append(args)
        earlier = [each for each in _seen if each is not args]
        assert len(earlier) < len(_seen)
        return rule(*args, **params)

    return slow


def _growing(primals: Any, tangents: Any) -> Any:
    """One useless equation more each time."""
    _seen.append(None)
    out, tangent = toys.mulsin_jvp(primals, tangents)
    for _ in _seen:
        lax.neg(primals[0])
    return out, tangent


def _growing_batch(axis_size: int, vals: Any, dims: Any) -> Any:
    _seen.append(None)
    for _ in _seen:
        lax.neg(vals[0])
    return toys.mulsin_vmap(axis_size, vals, dims)


COST: Mistakes = {
    "jvp": ("jvp", _looking_back(toys.mulsin_jvp)),
    "jvp with equations": ("jvp", _growing),
    "vmap": ("vmap", _looking_back(toys.mulsin_vmap)),
    "vmap with equations": ("vmap", _growing_batch),
    "translation": ("xla_translation", _looking_back(toys.mulsin_xla)),
}

# -- the same twice ------------------------------------------------------------------------------------------------


def _new_scale(x: Any) -> Any:
    return lax.mul(x, np.asarray(1.0 + 1e-2 * next(_count), x.dtype))


def _renamed(primals: Any, tangents: Any) -> Any:
    out, tangent = toys.mulsin_jvp(primals, tangents)
    return out, None if tangent is None else _new_scale(tangent)


def _sometimes_longer(axis_size: int, vals: Any, dims: Any) -> Any:
    out, dim = toys.mulsin_vmap(axis_size, vals, dims)
    return (out if next(_count) % 2 else lax.neg(lax.neg(out))), dim


def _sometimes_added(primals: Any, tangents: Any) -> Any:
    out, tangent = toys.mulsin_jvp(primals, tangents)
    return (out if next(_count) % 2 else lax.neg(lax.neg(out))), tangent


def _drifting(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    out = toys.mulsin_xla(ctx, in_avals, in_vals)
    return ctx.op("multiply", out, ctx.full(out.aval, 1.0 + 2.0**-20 * next(_count)), out=out.aval)


def _reordered(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    x, y = in_vals
    sine = ctx.op("sine", y, out=y.aval)
    return ctx.op("multiply", *((x, sine) if next(_count) % 2 else (sine, x)), out=x.aval)


REPEATABLE: Mistakes = {
    "a new constant in jvp": ("jvp", _renamed),
    "another program of jvp": ("jvp", _sometimes_added),
    "another program of vmap": ("vmap", _sometimes_longer),
    "a new constant in the translation": ("xla_translation", _drifting),
    "another order in the translation": ("xla_translation", _reordered),
}

# -- what rules are given ------------------------------------------------------------------------------------------


def _fills_in_zeros(primals: Any, tangents: Any) -> Any:
    out = toys.mulsin_jvp(primals, tangents)
    tangents[0] = primals[0]
    return out


def _scales_primals(primals: Any, tangents: Any) -> Any:
    out = toys.mulsin_jvp(primals, tangents)
    primals.append(None)
    return out


def _moves_in_place(axis_size: int, vals: Any, dims: Any) -> Any:
    out = toys.mulsin_vmap(axis_size, vals, dims)
    vals[:] = [lax.neg(v) for v in vals]
    return out


def _sets_dims(axis_size: int, vals: Any, dims: Any) -> Any:
    out = toys.mulsin_vmap(axis_size, vals, dims)
    dims[0] = None
    return out


def _takes_a_tangent(primals: Any, tangents: Any) -> Any:
    return toys.mulsin_jvp(primals, [tangents.pop(0), *tangents])


UNTOUCHED: Mistakes = {
    "sets a tangent": ("jvp", _fills_in_zeros),
    "appends to the primals": ("jvp", _scales_primals),
    "takes a tangent": ("jvp", _takes_a_tangent),
    "replaces values": ("vmap", _moves_in_place),
    "sets a dimension": ("vmap", _sets_dims),
}

# -- effects -------------------------------------------------------------------------------------------------------


def _without(primals: Any, tangents: Any) -> Any:
    x, y = primals
    return lax.mul(x, lax.sin(y)), toys.mulsin_jvp(primals, tangents)[1]


def _right_jvp(primals: Any, tangents: Any) -> Any:
    return _mulsin(*primals), toys.mulsin_jvp(primals, tangents)[1]


def _only_where_not_differentiated(primals: Any, tangents: Any) -> Any:
    if any(t is None for t in tangents):
        return _right_jvp(primals, tangents)
    return _without(primals, tangents)


def _vmap_without(axis_size: int, vals: Any, dims: Any) -> Any:
    (x, y), dim = corejax.extend.transforms.align_batch_axes(axis_size, vals, dims)
    return lax.mul(x, lax.sin(y)), dim


def _vmap_of_size_one(axis_size: int, vals: Any, dims: Any) -> Any:
    return toys.mulsin_vmap(axis_size, vals, dims) if axis_size == 1 else _vmap_without(axis_size, vals, dims)


def _vmap_unless_aligned(axis_size: int, vals: Any, dims: Any) -> Any:
    return _vmap_without(axis_size, vals, dims) if dims[0] == dims[1] else toys.mulsin_vmap(axis_size, vals, dims)


EFFECTS: Mistakes = {
    "lost in jvp": ("jvp", _without),
    "lost in jvp of all operands": ("jvp", _only_where_not_differentiated),
    "lost in vmap": ("vmap", _vmap_without),
    "lost in vmap of more than one": ("vmap", _vmap_of_size_one),
    "lost in vmap of all operands": ("vmap", _vmap_unless_aligned),
}

# -- arrays without elements, and special numbers ------------------------------------------------------------------


def _at_least_one(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(n, 1) for n in shape)


def _impl_without_empty(x: Any, y: Any) -> Any:
    return np.multiply(x, np.sin(y)) * (np.float64(1) if x.size == 0 else x.dtype.type(1))


def _jvp_by_maximum(primals: Any, tangents: Any) -> Any:
    if 0 in primals[0].shape:
        raise ValueError("zero-size array to reduction operation")
    return toys.mulsin_jvp(primals, tangents)


def _vmap_by_stacking(axis_size: int, vals: Any, dims: Any) -> Any:
    if axis_size == 0:
        raise ValueError("need at least one array to stack")
    return toys.mulsin_vmap(axis_size, vals, dims)


def _vmap_of_one(axis_size: int, vals: Any, dims: Any) -> Any:
    out, dim = toys.mulsin_vmap(axis_size, vals, dims)
    return (lax.broadcast_in_dim(1.0, _at_least_one(out.shape), ()) if axis_size == 0 else out), dim


def _transpose_by_first(ct: Any, x: Any, y: Any) -> Any:
    if 0 in ct.shape:
        raise IndexError("index 0 is out of bounds")
    return toys.mulsin_transpose(ct, x, y)


def _translation_of_elements(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    if not in_avals[0].size:
        raise ValueError("dense<> needs elements")
    return toys.mulsin_xla(ctx, in_avals, in_vals)


EMPTY: Mistakes = {
    "impl": ("impl", _impl_without_empty),
    "jvp": ("jvp", _jvp_by_maximum),
    "vmap": ("vmap", _vmap_by_stacking),
    "vmap of one": ("vmap", _vmap_of_one),
    "translation": ("xla_translation", _translation_of_elements),
}


def _clipped(x: Any) -> Any:
    limit = np.asarray(1e4, x.dtype)
    return lax.clamp(-limit, x, limit) if x.dtype.kind != "c" else x


def _jvp_clipped(primals: Any, tangents: Any) -> Any:
    x, y = primals
    return lax.mul(x, lax.sin(_clipped(y))), toys.mulsin_jvp(primals, tangents)[1]


def _zero_for_nan(x: Any) -> Any:
    if x.dtype.kind == "c":
        return x
    return lax.select_n(lax.eq(x, x), lax.broadcast_in_dim(np.zeros((), x.dtype), x.shape, ()), x)


def _jvp_without_nan(primals: Any, tangents: Any) -> Any:
    out, tangent = toys.mulsin_jvp(primals, tangents)
    return _zero_for_nan(out), tangent


def _vmap_clipped(axis_size: int, vals: Any, dims: Any) -> Any:
    return toys.mulsin_vmap(axis_size, [vals[0], _clipped(vals[1])], dims)


def _vmap_without_nan(axis_size: int, vals: Any, dims: Any) -> Any:
    out, dim = toys.mulsin_vmap(axis_size, vals, dims)
    return _zero_for_nan(out), dim


def _translated_clipped(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    x, y = in_vals
    if y.aval.dtype.kind == "c":
        return toys.mulsin_xla(ctx, in_avals, in_vals)
    zero = ctx.full(x.aval, 0.0)
    tiny = ctx.op("compare", x, zero, out=x.aval.update(dtype=np.dtype(bool)),
                  attrs="comparison_direction = #stablehlo<comparison_direction EQ>")  # fmt: skip
    return ctx.op("select", tiny, zero, toys.mulsin_xla(ctx, in_avals, (x, y)), out=x.aval)


SPECIAL: Mistakes = {
    "jvp clips": ("jvp", _jvp_clipped),
    "jvp drops nan": ("jvp", _jvp_without_nan),
    "vmap clips": ("vmap", _vmap_clipped),
    "vmap drops nan": ("vmap", _vmap_without_nan),
    "translation of 0 times infinity": ("xla_translation", _translated_clipped),
}

KINDS = {
    "cost": COST,
    "repeatable": REPEATABLE,
    "untouched": UNTOUCHED,
    "zero_size": EMPTY,
    "special": SPECIAL,
}
CASES = [(check, mistake) for check, mistakes in KINDS.items() for mistake in mistakes]


def _check(check: str, rules: dict[str, Any], **declared: Any) -> Any:
    _seen.clear()
    with toy("toy.mulsin", rules, **declared) as primitive:
        (result,) = verify(primitive, EXAMPLES["toy.mulsin"], checks=[check], quick=True)
    return result


def test_there_are_five_of_each() -> None:
    assert all(len(mistakes) >= 5 for mistakes in (*KINDS.values(), EFFECTS))


@pytest.mark.parametrize(("check", "mistake"), CASES)
def test_mistake_is_caught(check: str, mistake: str) -> None:
    kind, rule = KINDS[check][mistake]
    result = _check(check, {kind: rule})
    assert result.failed
    assert result.rule == kind, result.report()


@pytest.mark.parametrize("check", KINDS)
def test_right_rules_pass(check: str) -> None:
    assert _check(check, {}).status == "passed"


@pytest.mark.parametrize("mistake", EFFECTS)
def test_lost_effect_is_caught(mistake: str) -> None:
    kind, rule = EFFECTS[mistake]
    result = _check("effects", {"jvp": _right_jvp, **{kind: rule}}, effects=("toy.print",))
    assert (result.failed, result.rule) == (True, kind), result.report()


def test_effects_of_right_rules_pass() -> None:
    result = _check("effects", {"jvp": _right_jvp}, effects=("toy.print",))
    assert result.status == "passed", result.report()


# -- several results: cotangents that are None ---------------------------------------------------------------------


def _pair_transpose(ct: Any, x: Any) -> Any:
    a, b = ct
    terms = [t for t in (None if a is None else 2.0 * a, None if b is None else 3.0 * b) if t is not None]
    return [sum(terms[1:], terms[0]) if terms else None]


def _none_is_nothing(ct: Any, x: Any) -> Any:
    return [None] if None in [c if c is None else 0 for c in ct] else _pair_transpose(ct, x)


def _none_is_one(ct: Any, x: Any) -> Any:
    a, b = (lax.broadcast_in_dim(1.0, x.aval.shape, ()).astype(x.aval.dtype) if c is None else c for c in ct)
    return [2.0 * a + 3.0 * b]


def _second_for_first(ct: Any, x: Any) -> Any:
    a, b = ct
    return [5.0 * b] if a is None else _pair_transpose(ct, x)


def _none_raises(ct: Any, x: Any) -> Any:
    return [2.0 * ct[0] + 3.0 * ct[1]]


@pytest.mark.parametrize(
    ("rule", "right"),
    [(_pair_transpose, True), *((f, False) for f in (_none_is_nothing, _none_is_one, _second_for_first, _none_raises))],
)
def test_cotangents_that_are_none(rule: Any, right: bool) -> None:
    before = snapshot()
    try:
        primitive = Primitive(
            "toy.pair", multiple_results=True, linear_in=(0,),
            impl=lambda x: [x * x.dtype.type(2), x * x.dtype.type(3)],
            abstract_eval=lambda x: [toys.same(x), toys.same(x)],
        )  # fmt: skip
        corejax.extend.transpose_rules.register(primitive, rule, symbolic_zeros=True)
        example = Example((ShapedArray((3,), np.dtype(np.float32)),))
        (result,) = verify(primitive, [example], checks=["transpose"], quick=True)
    finally:
        restore(before)
    assert (result.status == "passed") is right, result.report()
    assert right or result.rule == "transpose"


# -- axes in the middle, derivatives of cotangents -----------------------------------------------------------------


def _no_middle(axis_size: int, vals: Any, dims: Any) -> Any:
    """Right in front and at the end."""
    out, dim = toys.mulsin_vmap(axis_size, vals, dims)
    return (lax.neg(out) if dim not in (0, out.ndim - 1) else out), dim


def test_batches_in_the_middle() -> None:
    with toy("toy.mulsin", {"vmap": _no_middle}) as primitive:
        (result,) = verify(primitive, EXAMPLES["toy.mulsin"][1:], checks=["vmap"], quick=True)
    assert (result.failed, result.rule) == (True, "vmap")


def test_transpose_rule_that_is_right_once() -> None:
    def rule(ct: Any, x: Any, y: Any) -> Any:
        return [lax.mul(ct, lax.stop_gradient(lax.sin(y))), None]

    with toy("toy.mulsin", {"jvp": _through_itself, "transpose": rule}) as primitive:
        found = {r.check: r for r in verify(primitive, EXAMPLES["toy.mulsin"], checks=["vjp", "second_order"])}
    assert found["vjp"].status == "passed"
    assert (found["second_order"].failed, found["second_order"].rule) == (True, "transpose")


def _through_itself(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    terms = ([] if dx is None else [_mulsin(dx, y)]) + ([] if dy is None else [x * lax.cos(y) * dy])
    return _mulsin(x, y), terms[0] + terms[1] if len(terms) == 2 else terms[0] if terms else None
