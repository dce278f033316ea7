"""Applications of functions with rules of their own, for whoever checks the rules of their primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Example, JaxprEqn, ShapedArray, jvp_flat, stage_closed
from corejax_control_flow.custom.custom_jvp import custom_jvp
from corejax_control_flow.custom.custom_vjp import custom_vjp
from corejax_control_flow.custom.custom_vmap import custom_vmap
from corejax_control_flow.custom.linear_call import linear_call
from corejax_control_flow.solvers.custom_linear_solve import custom_linear_solve

F32 = np.dtype(np.float32)
_OPAQUE = {"text": "rules are Python functions, which do not print as text that parses"}


def _x(*shape: int) -> ShapedArray:
    return ShapedArray(shape, F32)


def _equation(fun: Callable[..., list[Any]], avals: Sequence[ShapedArray], name: str) -> JaxprEqn:
    return next(e for e in stage_closed(fun, avals).jaxpr.eqns if e.primitive.name == name)


def _example(fun: Callable[..., list[Any]], avals: Sequence[ShapedArray], name: str, **fields: Any) -> Example:
    eqn = _equation(fun, avals, name)
    return Example(tuple(v.aval for v in eqn.invars), eqn.params, **fields)


def jvp_calls() -> list[Example]:
    """Of `custom_jvp_call`: two results; a closed-over array, whose rule has no derivative."""
    from corejax_lax_basic import lax

    f = custom_jvp(lambda x, y: (lax.sin(x) * y, y * 2.0))

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        x, y = primals
        x_dot, y_dot = tangents
        return f(x, y), (lax.cos(x) * y * x_dot + lax.sin(x) * y_dot, y_dot * 2.0)

    g = custom_jvp(lambda x: lax.exp(x))
    g.defjvps(lambda t, out, x: t * out)
    name = "custom_jvp_call"
    return [
        _example(lambda x, y: list(f(x, y)), (_x(3), _x(3)), name, skip=_OPAQUE),
        _example(lambda x: [g(x)], (_x(2, 2),), name, skip=_OPAQUE),
    ]


_REVERSE_ONLY = "a custom_vjp function has no forward mode, by design"


def vjp_calls() -> list[Example]:
    """Of `custom_vjp_call`: two operands."""
    from corejax_lax_basic import lax

    f = custom_vjp(lambda x, y: lax.sin(x) * y)
    f.defvjp(
        lambda x, y: (lax.sin(x) * y, (lax.cos(x), lax.sin(x), y)),
        lambda res, ct: (res[0] * res[2] * ct, res[1] * ct),
    )
    fails = dict.fromkeys(
        ("untouched", "jvp", "linearity", "zeros", "linearize", "second_order", "vjp", "splits"), _REVERSE_ONLY
    )
    return [_example(lambda x, y: [f(x, y)], (_x(3), _x(3)), "custom_vjp_call", skip=_OPAQUE, fails=fails)]


def forward_passes(primitive: str) -> list[Example]:
    """Of `remat_opt` and `custom_lin`, which the forward pass of a `custom_vjp` function applies."""
    from corejax_lax_basic import lax

    f = custom_vjp(lambda x, y: lax.sin(x) * y)
    f.defvjp(
        lambda x, y: (lax.sin(x) * y, (lax.cos(x), y)), lambda res, ct: (res[0] * res[1] * ct, ct), optimize_remat=True
    )

    def pushed(x: Any, y: Any) -> list[Any]:
        outs, tangents = jvp_flat(lambda x: [f(x, y)], [x], [y])
        return [*outs, *tangents]

    if primitive == "remat_opt":
        return [_example(pushed, (_x(3), _x(3)), primitive)]
    unevaluated = dict.fromkeys(_EVALUATES, _REVERSE_ONLY)
    return [_example(pushed, (_x(3), _x(3)), primitive, skip=_OPAQUE, fails=unevaluated)]


# What evaluates the derivative of a call, which only transposition can make sense of.
_EVALUATES = (
    *(
        "types",
        "pure",
        "programs",
        "jvp",
        "linearity",
        "zeros",
        "repeatable",
        "untouched",
        "zero_size",
        "cost",
        "linearize",
        "second_order",
        "transpose",
        "vjp",
        "vmap",
    ),
    *("nested_vmap", "partial_eval", "splits", "xla", "stablehlo", "pairs", "triples"),
)


def vmap_calls() -> list[Example]:
    """Of `custom_vmap_call`: the rule computes the same in another order."""
    from corejax_lax_basic import lax

    f = custom_vmap(lambda x, y: lax.sin(x) * y)
    f.def_vmap(lambda size, batched, x, y: (y * lax.sin(x), any(batched)))
    both = custom_vmap(lambda x: lax.sin(x))
    both.def_vmap(lambda size, batched, x: (lax.sin(x), batched[0]))
    name = "custom_vmap_call"
    return [
        _example(lambda x, y: [f(x, y)], (_x(), _x()), name, skip=_OPAQUE),
        _example(lambda x: [both(x)], (_x(3),), name, skip=_OPAQUE),
    ]


def linear_calls() -> list[Example]:
    """Of `linear_call`."""

    def scaled(r: Any, x: Any) -> list[Any]:
        return [linear_call(lambda r, x: x * r, lambda r, ct: ct * r, r, x)]

    return [_example(scaled, (_x(3), _x(3)), "linear_call")]


def linear_solves() -> list[Example]:
    """Of `custom_linear_solve`, with the coefficients in the programs: as operands they would belong together."""
    from corejax_lax_basic import lax

    def symmetric(b: Any) -> list[Any]:
        def matvec(x: Any) -> Any:
            return x * 2.0 + lax.rev(x, (0,)) * 0.5

        return [custom_linear_solve(matvec, b, lambda mv, b: (b * 2.0 - lax.rev(b, (0,)) * 0.5) / 3.75, symmetric=True)]

    def first_in_all(b: Any) -> list[Any]:
        def solve(matvec: Any, b: Any) -> Any:
            return (b - b[0] / 3.0) / 2.0

        def transpose_solve(vecmat: Any, b: Any) -> Any:
            return lax.concatenate([(b[:1] - b[1:].sum() / 2.0) / 3.0, b[1:] / 2.0], 0)

        return [custom_linear_solve(lambda x: x * 2.0 + x[0], b, solve, transpose_solve)]

    return [_example(fun, (_x(3),), "custom_linear_solve") for fun in (symmetric, first_in_all)]


def examples_of(primitive: str) -> list[Example]:
    """Applications of one primitive; none for a name that is not of this module."""
    made = {
        "custom_jvp_call": jvp_calls,
        "custom_linear_solve": linear_solves,
        "custom_vjp_call": vjp_calls,
        "custom_vmap_call": vmap_calls,
        "linear_call": linear_calls,
    }
    if primitive in ("custom_lin", "remat_opt"):
        return forward_passes(primitive)
    return made[primitive]() if primitive in made else []
