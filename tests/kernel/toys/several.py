"""Primitives with several results, with effects, and with nothing but a decomposition or half of their rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, get_aval, is_undef_primal, jvp_rules, transpose_rules
from tests.kernel.toys.functions import add, cos, mul, neg, sin, sum_

__all__ = ["bare_p", "floor_p", "moments_p", "ordered_p", "print_p", "printed", "scale_p", "sincos_p", "swap_p"]

# Sine and cosine; its JVP rule is plain: it gets real zeros and gives real ones.
sincos_p = Primitive(
    "toy.circle",
    multiple_results=True,
    impl=lambda x: [np.sin(x), np.cos(x)],
    abstract_eval=lambda a: [a, a],
    jvp=lambda primals, tangents: (
        sincos_p.bind(*primals),
        [mul(tangents[0], cos(*primals)), neg(mul(tangents[0], sin(*primals)))],
    ),
    vmap=lambda axis_size, vals, dims: (sincos_p.bind(*vals), [dims[0], dims[0]]),
)

# Two operands in the other order: linear, with symbolic zeros throughout.
swap_p = Primitive(
    "toy.swap",
    multiple_results=True,
    linear_in=(0, 1),
    impl=lambda x, y: [y, x],
    abstract_eval=lambda a, b: [b, a],
    vmap=lambda axis_size, vals, dims: (swap_p.bind(*vals), [dims[1], dims[0]]),
)


@jvp_rules.register(swap_p, symbolic_zeros=True)
def _swap_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return swap_p.bind(*primals), [tangents[1], tangents[0]]


# `x * factor + x`, linear; its transpose rule is plain: the cotangents that it gets are real.
scale_p = Primitive(
    "toy.scale",
    multiple_results=True,
    linear_in=(0,),
    impl=lambda x, *, factor: [x * x.dtype.type(factor), x],
    abstract_eval=lambda a, *, factor: [a, a],
    jvp=lambda primals, tangents, *, factor: (
        scale_p.bind(*primals, factor=factor),
        scale_p.bind(*tangents, factor=factor),
    ),
    vmap=lambda axis_size, vals, dims, *, factor: (scale_p.bind(*vals, factor=factor), [dims[0], dims[0]]),
    transpose=lambda cts, x, *, factor: [add(mul(cts[0], factor), cts[1])],
)

# The derivative is zero, and the (plain) rule says so with real zeros, which do not depend on the input tangent.
floor_p = Primitive(
    "toy.floor",
    impl=np.floor,
    abstract_eval=lambda a: a,
    jvp=lambda primals, tangents: (
        floor_p.bind(*primals),
        np.zeros(get_aval(primals[0]).shape, get_aval(primals[0]).dtype),
    ),
    vmap=lambda axis_size, vals, dims: (floor_p.bind(*vals), dims[0]),
)

printed: list[Any] = []


def _print(*arrays: np.ndarray) -> list[Any]:
    printed.append([x.tolist() for x in arrays])
    return []


print_p = Primitive(
    "toy.print",
    multiple_results=True,
    effects=("print",),
    impl=_print,
    abstract_eval=lambda *avals: [],
    jvp=lambda primals, tangents: (print_p.bind(*primals), []),
    vmap=lambda axis_size, vals, dims: (print_p.bind(*vals), []),
)


def _moments(x: Any, y: Any, *, weight: float) -> list[Any]:
    """The sum of `x * y`, and a weighted `x`."""
    return [sum_(mul(x, y)), mul(sin(x), weight)]


moments_p = Primitive("toy.moments", multiple_results=True, decomposition=_moments)

# Half a primitive: it has impl and abstract eval, and misses every other rule.
bare_p = Primitive("toy.bare", impl=lambda x: x, abstract_eval=lambda a: a)
ordered_p = Primitive("toy.ordered", impl=lambda x: x, abstract_eval=lambda a: a, effects=("ordered:toy",))


@transpose_rules.register(swap_p, symbolic_zeros=True)
def _swap_transpose(cts: Sequence[Any], x: Any, y: Any) -> list[Any]:
    return [ct if is_undef_primal(v) else None for v, ct in zip((x, y), reversed(cts), strict=True)]
