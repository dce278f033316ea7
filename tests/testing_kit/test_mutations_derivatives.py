"""The kit finds derivatives that are wrong in one dtype only, or at special points only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax
import corejax.lax as lax
import corejax.numpy as jnp
from corejax.extend import Example, Primitive, ShapedArray, jvp_rules, primitives, transpose_rules
from corejax_testing import verify
from tests.testing_kit import toys
from tests.testing_kit.toys import EXAMPLES, toy

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def _failed(primitive: Primitive, check: str, examples: Any = None, quick: bool = True) -> Any:
    (result,) = verify(primitive, examples, checks=[check], quick=quick)
    assert result.failed, result
    return result


def _only_in(dtype: Any, rule: Callable[..., Any], change: Callable[[Any], Any]) -> Any:
    """A jvp rule whose tangent is changed in one dtype."""

    def wrong(primals: Any, tangents: Any, **params: Any) -> Any:
        out, tangent = rule(primals, tangents, **params)
        return out, change(tangent) if tangent is not None and tangent.dtype == dtype else tangent

    return wrong


NARROW = {t: np.dtype(t) for t in ("float16", "float32", "complex64")} | {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
CHANGES: dict[str, Callable[[Any], Any]] = {
    "sign": lambda t: -t,
    "factor": lambda t: t * 1.5,
    "offset": lambda t: t + t * t,
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [*NARROW, "complex128"])
@pytest.mark.parametrize("change", CHANGES)
def test_jvp_rule_wrong_in_one_dtype(dtype: str, change: str) -> None:
    rule = _only_in(NARROW.get(dtype, dtype), toys.mulsin_jvp, CHANGES[change])
    with toy("toy.mulsin", {"jvp": rule}) as primitive:
        result = _failed(primitive, "derivative_dtypes", EXAMPLES["toy.mulsin"])
    assert result.rule == "jvp", result.report()


def test_linearize_blames_the_partial_eval_rule() -> None:
    """Where a primitive has one, for jvp itself ran the jvp rule as well."""

    def through_itself(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        return primitive.bind(x, y), primitive.bind(dx, y) + x * lax.cos(y) * dy

    def wrong(trace: Any, args: Any) -> Any:
        return trace.record(primitive, [args[0], lax.cos(args[1])], {})[0]

    rules = {"jvp": through_itself, "partial_eval": wrong, "transpose": toys.mulsin_transpose}
    with toy("toy.mulsin", rules) as primitive:
        assert _failed(primitive, "linearize", EXAMPLES["toy.mulsin"]).rule == "partial_eval"


@pytest.mark.parametrize("dtype", NARROW)
def test_transpose_rule_wrong_in_one_dtype(dtype: str) -> None:
    def through_itself(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        terms = [None if dx is None else primitive.bind(dx, y), None if dy is None else x * lax.cos(y) * dy]
        terms = [t for t in terms if t is not None]
        return primitive.bind(x, y), sum(terms[1:], terms[0]) if terms else None

    def rule(ct: Any, x: Any, y: Any) -> Any:
        return [ct * lax.sin(y) * (2.0 if ct.dtype == NARROW[dtype] else 1.0), None]

    with toy("toy.mulsin", {"jvp": through_itself, "transpose": rule}) as primitive:
        assert _failed(primitive, "derivative_dtypes", EXAMPLES["toy.mulsin"]).rule == "transpose"


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", ["sin", "mul", "pow", "reduce_prod", "dynamic_slice", "cumsum"])
def test_first_party_rule_wrong_in_one_dtype(name: str, dtype: str) -> None:
    primitive = primitives[name]
    before = jvp_rules.rule_of(primitive)

    def wrong(primals: Any, tangents: Any, **params: Any) -> Any:
        outs, tangents_out = before.fn(primals, tangents, **params)
        return outs, None if tangents_out is None else (
            tangents_out * 1.25 if tangents_out.dtype == NARROW[dtype] else tangents_out
        )  # fmt: skip

    jvp_rules.register(primitive, wrong, override=True, **before.flags)
    _failed(primitive, "derivative_dtypes")


# -- special points ------------------------------------------------------------------------------------------------


def _elementwise(name: str, impl: Any, jvp: Any, operands: int = 1, **example: Any) -> Any:
    primitive = Primitive(
        name, impl=lambda *a: np.asarray(impl(*a), a[0].dtype), abstract_eval=toys.same, jvp=jvp, tags=("elementwise",)
    )
    return primitive, [Example([ShapedArray((3,), np.dtype(np.float32))] * operands, **example)]


def _unary_jvp(value: Any, slope: Any) -> Any:
    return lambda p, t: (value(p[0]), slope(p[0]) * t[0])


def _naive_logistic(x: Any) -> Any:
    e = lax.exp(-x)
    return e / ((1.0 + e) * (1.0 + e))


UNARY: dict[str, tuple[Any, Any, Any]] = {
    "0/0 at zero": (np.abs, lax.abs, lambda x: x / lax.abs(x)),
    "one at zero": (lambda x: x * np.abs(x), lambda x: x * lax.abs(x), lambda x: 2.0 * lax.abs(x) + (x == 0)),
    "negative is clipped": (np.square, lax.square, lambda x: 2.0 * lax.max(x, lax.full_like(x, -1.5))),
    "saturation": (lambda x: 1 / (1 + np.exp(-x)), lax.logistic, _naive_logistic),
    "large arguments": (np.sin, lax.sin, lambda x: lax.cos(lax.clamp(-100.0, x, 100.0))),
    "half at whole numbers": (np.sin, lax.sin, lambda x: lax.cos(x) * jnp.where(x == lax.round(x), 0.5, 1.0)),
    "twice the subgradient": (np.abs, lax.abs, lambda x: lax.sign(x) + 2.0 * (x == 0)),
}


@pytest.mark.parametrize("mistake", UNARY)
def test_wrong_at_special_points(mistake: str) -> None:
    impl, value, slope = UNARY[mistake]
    primitive, examples = _elementwise("toy.unary", impl, _unary_jvp(value, slope), low=0.5, high=1.4)
    assert _failed(primitive, "points", examples).rule == "jvp"


def _ties(share: float) -> Any:
    def rule(p: Any, t: Any) -> Any:
        (x, y), (dx, dy) = p, t
        equal = lax.eq(x, y)
        of_x = jnp.where(equal, share, jnp.where(x > y, 1.0, 0.0)).astype(x.dtype)
        of_y = jnp.where(equal, share, jnp.where(x > y, 0.0, 1.0)).astype(x.dtype)
        return lax.max(x, y), of_x * dx + of_y * dy

    return rule


@pytest.mark.parametrize(("share", "right"), [(0.5, True), (0.0, False), (1.0, False), (2.0, False)])
def test_ties_of_two(share: float, right: bool) -> None:
    primitive, examples = _elementwise("toy.max", np.maximum, _ties(share), 2)
    (result,) = verify(primitive, examples, checks=["points"], quick=True)
    assert result.failed is not right, result.report()


def _power(p: Any, t: Any) -> Any:
    (x, y), (dx, dy) = p, t
    out = lax.pow(x, y)
    return out, out * (y * dx / x + lax.log(x) * dy)


def _product(p: Any, t: Any) -> Any:
    """The derivative through the logarithm."""
    (x, y), (dx, dy) = p, t
    out = x * y
    return out, out * (dx / x) + out * (dy / y)


BINARY = {"power by logarithms": (np.power, _power), "product by quotients": (np.multiply, _product)}


@pytest.mark.parametrize("mistake", BINARY)
def test_wrong_at_zero_and_negative_bases(mistake: str) -> None:
    primitive, examples = _elementwise("toy.binary", *BINARY[mistake], 2, low=0.5)
    assert _failed(primitive, "points", examples).rule == "jvp"


def _first_party(name: str, tangent: Callable[..., Any]) -> Primitive:
    primitive = primitives[name]

    def wrong(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        return out, tangent(out, primals[0], tangents[0], **params)

    jvp_rules.register(primitive, wrong, override=True)
    return primitive


def _at_every_tie(out: Any, x: Any, t: Any, *, axes: Any, **_: Any) -> Any:
    kept = jnp.expand_dims(out, axes)
    return lax.reduce_sum_p.bind(t * (x == kept).astype(x.dtype), axes=axes)


def _by_quotient(out: Any, x: Any, t: Any, *, axes: Any, **_: Any) -> Any:
    return out * lax.reduce_sum_p.bind(t / x, axes=axes)


def _running_quotient(out: Any, x: Any, t: Any, **params: Any) -> Any:
    return out * lax.cumsum_p.bind(t / x, **params)


def _running_tie(out: Any, x: Any, t: Any, *, axis: int, reverse: bool) -> Any:
    return lax.cumsum_p.bind(t * (x == out).astype(x.dtype) * 0.0, axis=axis, reverse=reverse) + t * (x == out)


def _overflowing(out: Any, x: Any, t: Any, **params: Any) -> Any:
    e = lax.exp(x)
    return lax.cumsum_p.bind(e * t, **params) / lax.cumsum_p.bind(e, **params)


REDUCTIONS = [
    *((name, _at_every_tie) for name in ("reduce_max", "reduce_min")),
    ("reduce_prod", _by_quotient),
    ("cumprod", _running_quotient),
    ("cummax", _running_tie),
    ("cumlogsumexp", _overflowing),
]


@pytest.mark.parametrize(("name", "tangent"), REDUCTIONS)
def test_reductions_wrong_at_ties_and_zeros(name: str, tangent: Any) -> None:
    assert _failed(_first_party(name, tangent), "points").rule == "jvp"


def test_cotangent_that_is_not_a_number_at_zero() -> None:
    def value(x: Any) -> Any:
        return x * 3.0

    primitive, examples = _elementwise(
        "toy.three", lambda x: 3 * x, lambda p, t: (value(p[0]), scaled.bind(t[0], p[0]))
    )
    scaled = Primitive(
        "toy.scaled", impl=lambda t, x: 3 * t, abstract_eval=toys.same, linear_in=(0,), tags=("elementwise",)
    )
    transpose_rules.register(scaled, lambda ct, t, x: [3.0 * ct * x / x, None])
    corejax.extend.defvectorized(scaled)
    assert _failed(primitive, "points", examples).rule == "jvp"  # toy.three has no transpose rule, but uses scaled's


def _doubled_at_rank_3(primals: Any, tangents: Any) -> Any:
    out, tangent = toys.mulsin_jvp(primals, tangents)
    return out, lax.mul(tangent, 2.0 if len(primals[0].shape) == 3 else 1.0)


def test_jvp_rule_wrong_at_a_rank_that_no_example_has() -> None:
    with toys.toy("toy.mulsin", {"jvp": _doubled_at_rank_3}) as primitive:
        [result] = verify(primitive, toys.EXAMPLES["toy.mulsin"], checks=["jvp"])
    assert (result.failed, result.rule) == (True, "jvp")


# -- what the checks do not complain of --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["toy.mulsin", "toy.rowsum", "toy.both"])
def test_right_rules_pass(name: str) -> None:
    with toy(name) as primitive:
        results = list(verify(primitive, EXAMPLES[name], checks=["derivative_dtypes", "points"]))
    assert [r.status for r in results] == ["passed", "passed"], [r.report() for r in results]


def test_operands_outside_the_domain_are_no_failure() -> None:
    def positive(x: Any) -> Any:
        if np.any(x <= 0):
            raise ValueError("positive numbers only")
        return np.log(x)

    primitive, examples = _elementwise("toy.log", positive, lambda p, t: (lax.log(p[0]), t[0] / p[0]), low=0.5)
    (result,) = verify(primitive, examples, checks=["points"])
    assert result.status == "not applicable"


PARTIAL: dict[str, tuple[Any, Any]] = {
    "root": (np.sqrt, lambda x: 0.5 / lax.sqrt(x)),
    "arc sine": (np.arcsin, lambda x: 1.0 / lax.sqrt(1.0 - x * x)),
    "logarithm of the absolute value": (lambda x: np.log(np.abs(x)), lambda x: 1.0 / x),
    "floor": (np.floor, lambda x: 0.0 * x),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_points_without_derivative_are_no_failure(name: str) -> None:
    function, slope = PARTIAL[name]

    def jvp(p: Any, t: Any) -> Any:
        return primitive.bind(p[0]), slope(p[0]) * t[0]

    primitive, examples = _elementwise("toy.partial", function, jvp, low=0.2, high=0.8)
    (result,) = verify(primitive, examples, checks=["points"])
    assert result.status == "passed", result.report()
