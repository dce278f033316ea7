"""Every rule: what a function gives anywhere in a box is within the bounds, also compiled and in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from boxes import box, check_inside, in_double, known_fraction, points

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.interval_bounds import Interval, interval_rules, propagate


class Case(NamedTuple):
    """A function of arrays of these shapes, with numbers in this range; `exact` ones have no other precision."""

    primitive: str
    fun: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...] = ((3, 4),)
    low: float = -3.0
    high: float = 3.0
    dtype: Any = np.float32
    also: tuple[Any, ...] = ()  # known arguments after the open ones
    known: float = 0.9  # how many of the bounds have to be finite


def unary(name: str, low: float = -3.0, high: float = 3.0, known: float = 0.9) -> Case:
    return Case(name, getattr(lax, name), ((3, 4),), low, high, known=known)


def binary(name: str, low: float = -3.0, high: float = 3.0, known: float = 0.9) -> Case:
    return Case(name, getattr(lax, name), ((3, 4), (3, 4)), low, high, known=known)


W = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
INT = np.int32

CASES = [
    *(unary(n) for n in ("abs", "ceil", "cos", "exp", "expm1", "floor", "logistic", "neg", "sign", "sin", "tanh")),
    *(unary(n) for n in ("asinh", "atan", "cbrt", "erf", "round", "sinh")),
    *(unary(n, -20, 20) for n in ("sin", "cos", "logistic", "tanh", "exp")),
    *(unary(n, 0.1, 5) for n in ("log", "sqrt", "rsqrt")),
    *(unary(n, -1, 5, known=0.1) for n in ("log", "sqrt", "rsqrt")),
    unary("tan", -1.4, 1.4),
    unary("tan", -5, 5, known=0.1),
    unary("log1p", -0.9, 5),
    unary("is_finite"),
    unary("stop_gradient"),
    *(binary(n) for n in ("add", "sub", "mul", "max", "min", "lt", "le", "gt", "ge", "eq", "ne")),
    binary("div", 0.5, 3),
    binary("div", known=0.2),
    binary("rem", 0.5, 3),
    binary("rem", known=0.1),
    binary("pow", 0.1, 3),
    binary("pow", known=0.05),
    Case("pow", lax.pow, ((3, 4),), also=(np.float32(3),)),
    Case("pow", lax.pow, ((3, 4),), also=(np.float32(2),)),
    Case("pow", lax.pow, ((3, 4),), also=(np.float32(0.5),), known=0.1),
    Case("pow", lambda y: jnp.power(np.float32(0.5), y)),
    *(Case("integer_pow", lambda x, n=n: lax.integer_pow(x, n)) for n in (0, 1, 2, 3, 4, 7)),
    *(Case("integer_pow", lambda x, n=n: lax.integer_pow(x, n), low=0.5) for n in (-1, -2, -3)),
    *(Case("integer_pow", lambda x, n=n: lax.integer_pow(x, n), known=0.05) for n in (-1, -2, -3)),
    Case("mul", lambda x: x * x),
    Case("mul", lambda x: x * W[:3, :4]),
    Case("clamp", lax.clamp, ((), (3, 4), ())),
    Case("reduce_sum", lambda x: jnp.sum(x, axis=1)),
    Case("reduce_sum", lambda x: jnp.sum(x * x), ((50, 20),)),
    Case("reduce_prod", lambda x: jnp.prod(x, axis=0)),
    Case("reduce_prod", jnp.prod, ((3, 5),), -1.5, 1.5),
    Case("reduce_prod", lambda x: jnp.prod(x, axis=1), ((3, 0),)),
    Case("reduce_max", lambda x: jnp.max(x, axis=1)),
    Case("reduce_min", lambda x: jnp.min(x, axis=0)),
    Case("cumsum", lambda x: lax.cumsum(x, 1), ((3, 20),)),
    Case("cumprod", lambda x: lax.cumprod(x, 0, reverse=True), low=-1.5, high=1.5),
    Case("cummax", lambda x: lax.cummax(x, 1)),
    Case("cummin", lambda x: lax.cummin(x, 1, reverse=True), dtype=INT),
    Case("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), ((3, 20),)),
    Case("while", lambda x: lax.while_loop(lambda y: jnp.max(y) > 0.5, lambda y: jnp.sin(y) * 0.7, x)),
    Case("argmax", lambda x: jnp.argmax(x, axis=1), ((6, 5),)),
    Case("argmin", lambda x: jnp.argmin(x, axis=0), ((6, 5),)),
    Case("argmin", lambda x: jnp.argmin(x, axis=0), ((6, 5),), dtype=INT),
    Case("reduce_and", lambda x: jnp.all(x > 0, axis=1)),
    Case("reduce_or", lambda x: jnp.any(x > 2, axis=1)),
    Case("and", lambda x, y: lax.bitwise_and(x > 0, y > 0), ((9,), (9,))),
    Case("or", lambda x, y: lax.bitwise_or(x > 0, y > 0), ((9,), (9,))),
    Case("xor", lambda x, y: lax.bitwise_xor(x > 0, y > 0), ((9,), (9,))),
    Case("not", lambda x: lax.bitwise_not(x > 0)),
    Case("not", lax.bitwise_not, dtype=INT),
    Case("select_n", lambda p, x, y: jnp.where(p > 0, x, y), ((9,), (9,), (9,))),
    Case("select_n", lambda p, x, y, z: lax.select_n(p, x, y, z), ((9,),), -1, 3, INT, (INT(1), INT(2), INT(9))),
    Case("dot_general", lambda x: x @ W),
    Case("dot_general", lambda x: W.T @ x, ((4, 3),)),
    Case("dot_general", jnp.matmul, ((3, 4), (4, 5))),
    Case("dot_general", lambda x: x @ x, ((4, 4),)),
    Case("dot_general", lambda x, y: jnp.einsum("bij,bkj->bik", x, y), ((2, 3, 4), (2, 5, 4))),
    Case("dot_general", lambda x, y: x @ y, ((0, 4), (4, 5))),
    Case("dot_general", lambda x, y: x @ y, ((2, 0), (0, 5))),
    Case("dot_general", lambda x, y: x @ y, ((2, 3), (3,)), dtype=INT),
    Case("dot_general", lambda x: x @ np.arange(4), dtype=INT),
    Case("broadcast_in_dim", lambda x: jnp.broadcast_to(x, (2, 3, 4))),
    Case("concatenate", lambda x, y: jnp.concatenate([x, y, W[:3, :4]]), ((3, 4), (2, 4))),
    Case("pad", lambda x, v: lax.pad(x, v, ((1, -1, 1), (0, 2, 0))), ((3, 4), ())),
    Case("reshape", lambda x: x.reshape(2, 6)),
    Case("rev", lambda x: x[::-1]),
    Case("slice", lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2))),
    Case("split", lambda x: lax.split(x, (1, 3), 1)),
    Case("stack", lambda x, y: jnp.stack([x, y, W[:3, :4]], 1), ((3, 4), (3, 4))),
    Case("tile", lambda x: jnp.tile(x, (2, 3))),
    Case("unstack", lambda x: jnp.unstack(x, axis=1)),
    Case("squeeze", lambda x: jnp.squeeze(x, 1), ((3, 1, 2),)),
    Case("transpose", jnp.transpose),
    Case("convert_element_type", lambda x: x.astype("float16")),
    Case("convert_element_type", lambda x: x.astype("int32"), low=-9, high=9),
    Case("convert_element_type", lambda x: x.astype("float32"), dtype=INT, low=-(2**30), high=2**30),
    Case("convert_element_type", lambda x: x.astype("bool"), dtype=INT),
    Case("convert_element_type", lambda x: (x > 0).astype("float32")),
    Case("dynamic_slice", lambda x: lax.dynamic_slice(x, (1, 2), (2, 2))),
    Case("dynamic_slice", lambda i: lax.dynamic_slice(W, (i, i), (2, 2)), ((),), -2, 9, INT),
    Case("dynamic_update_slice", lambda x, y: lax.dynamic_update_slice(x, y, (1, 2)), ((3, 4), (2, 2))),
    Case("dynamic_update_slice", lambda i: lax.dynamic_update_slice(W, W[:2, :2] + 9, (i, 1)), ((),), -2, 9, INT),
    Case("add", lambda x, y: x + y, ((7,), (7,)), -50, 50, INT),
    Case("mul", lambda x, y: x * y, ((7,), (7,)), -50, 50, INT),
    Case("div", lax.div, ((40,), (40,)), -50, 50, INT),
    Case("rem", lax.rem, ((40,), (40,)), -50, 50, INT),
    Case("pow", lax.pow, ((40,), (40,)), -4, 5, INT),
    Case("pow", lax.pow, ((40,), (40,)), 0, 5, np.uint32),
    Case("abs", lax.abs, ((40,),), -50, 50, INT),
    Case("integer_pow", lambda x: x**2, ((9,),), -9, 9, INT),
    Case("xla_call", corejax.jit(lambda x: jnp.sin(x) * W[:3, :4])),
    Case("cond", lambda p, x: lax.cond(p > 0, jnp.exp, lambda y: -y, x), ((), (4,))),
    Case("cond", lambda x: lax.cond(True, jnp.exp, lambda y: -y, x), ((4,),)),
    Case("cond", lambda i, x: lax.switch(i.astype("int32"), [jnp.exp, jnp.sin, abs], x), ((), (4,)), -1, 3),
    Case("scan", lambda x, xs: lax.scan(lambda c, y: (jnp.tanh(c + y), c * y), x, xs), ((2,), (5, 2))),
    Case("scan", lambda x: lax.scan(lambda c, y: (c + x, y), jnp.zeros(2, x.dtype), W[:, :2]), ((2,),)),
    Case("scan", lambda xs: lax.scan(lambda c, y: (c, y + c), np.float32(2), xs, reverse=True), ((5, 2),)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.primitive)
def test_what_a_function_gives_is_within_its_bounds(case: Case) -> None:
    rng = np.random.default_rng(len(case.primitive))
    compiled = corejax.jit(case.fun)
    known = []
    for _ in range(4):
        boxes = [box(rng, shape, case.low, case.high, case.dtype) for shape in case.shapes]
        bounds = corejax.tree.leaves(propagate(case.fun)(*boxes, *case.also), is_leaf=lambda x: isinstance(x, Interval))
        known += [known_fraction(b) for b in bounds]
        chosen = list(zip(*(points(rng, b, 6) for b in boxes), strict=True))
        for point in chosen:
            arguments = (*point, *case.also)
            results = [case.fun(*arguments)]
            if case.dtype == np.float32:
                results.append(in_double(case.fun, arguments))
            for result in results:
                for bound, value in zip(bounds, corejax.tree.leaves(result), strict=True):
                    check_inside(bound, value, case.primitive)
        for bound, value in zip(bounds, corejax.tree.leaves(compiled(*chosen[-1], *case.also)), strict=True):
            check_inside(bound, value, case.primitive)
    assert np.mean(known) >= case.known, f"only {np.mean(known):.0%} of the bounds say anything"


def test_every_rule_has_a_case() -> None:
    written = {p.name for p in interval_rules if interval_rules.rule_of(p).derived is None}
    assert written == {case.primitive for case in CASES}
    assert len(written) >= 60


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["exp", "tanh", "sin", "add", "mul", "reduce_sum"])
def test_other_precisions(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    dtype = corejax.dtypes.dtype(dtype)
    fun = {"add": lambda x: x + x[::-1], "mul": lambda x: x * x[::-1], "reduce_sum": jnp.sum}.get(
        name, getattr(lax, name, None)
    )
    operand = box(rng, (20,), -2, 2, dtype)
    bounds = propagate(fun)(operand)
    assert bounds.dtype == dtype
    for x in points(rng, operand, 5):
        check_inside(bounds, fun(x), name)
        check_inside(bounds, corejax.jit(fun)(x), name)
