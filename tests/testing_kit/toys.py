"""Three primitives with right rules of every kind, any of which a test can replace by a wrong one.

mulsin : a -> a -> a                        x sin(y), elementwise, linear in x
rowsum : a[m,n] -> a[m] or a[n]             3 times the sum over an axis, linear
both : a -> a -> (a, a)                     x cos(x) and x y; with x known, only the second result waits for y
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

import corejax
import corejax.lax as lax
from corejax.base.tables import restore, snapshot
from corejax.extend import Example, JaxprEqn, Primitive, ShapedArray, UndefPrimal, is_undef_primal, registries
from corejax.extend.transforms import align_batch_axes
from corejax_testing.checks import all_checks

corejax.plugins.load_everything()
F32 = np.dtype(np.float32)
# The check `jax` compiles as much as all others together; tests/to_jax has it on right and wrong rules.
CHECKS = [name for name in all_checks() if name != "jax"]
EXAMPLES = {
    "toy.mulsin": [
        Example((ShapedArray((3,), F32), ShapedArray((3,), F32)), reference=lambda x, y: x * np.sin(y)),
        Example((ShapedArray((2, 3), F32), ShapedArray((2, 3), F32)), low=0.5),
    ],
    "toy.rowsum": [Example((ShapedArray((2, 4), F32),), {"axis": axis}) for axis in (0, 1)],
    "toy.both": [Example((ShapedArray((3,), F32), ShapedArray((3,), F32)))],
}


def same(*avals: ShapedArray) -> ShapedArray:
    """Operands of one type of floating-point numbers."""
    if len({(a.shape, a.dtype) for a in avals}) > 1 or avals[0].dtype.kind not in "fcV":
        raise TypeError(f"toy: operands of types {', '.join(a.str_short() for a in avals)}")
    return avals[0].update(weak_type=all(a.weak_type for a in avals))


# -- mulsin ------------------------------------------------------------------------------------------------------


def mulsin_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    terms = []
    if dx is not None:
        terms.append(lax.mul(dx, lax.sin(y)))
    if dy is not None:
        terms.append(lax.mul(lax.mul(x, lax.cos(y)), dy))
    tangent = lax.add(*terms) if len(terms) == 2 else terms[0] if terms else None
    return lax.mul(x, lax.sin(y)), tangent


def mulsin_vmap(axis_size: int, vals: Any, dims: Any) -> Any:
    (x, y), dim = align_batch_axes(axis_size, vals, dims)
    size = corejax.eval_shape(lambda a, b: a * b, x, y).shape
    x, y = (lax.broadcast_in_dim(v, size, tuple(range(len(v.shape)))) if v.shape != size else v for v in (x, y))
    return corejax.extend.primitives["toy.mulsin"].bind(x, y), dim


def mulsin_transpose(ct: Any, x: Any, y: Any) -> Any:
    if is_undef_primal(y):
        raise TypeError("toy.mulsin is linear in its first operand")
    return [lax.mul(ct, lax.sin(y)), None]


def mulsin_xla(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    x, y = in_vals
    return ctx.op("multiply", x, ctx.op("sine", y, out=y.aval), out=x.aval)


# -- rowsum ------------------------------------------------------------------------------------------------------


def rowsum_aval(x: ShapedArray, *, axis: int) -> ShapedArray:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"toy.rowsum: axis {axis} of {x.str_short()}")
    return same(x).update(shape=tuple(d for i, d in enumerate(x.shape) if i != axis))


def rowsum_jvp(primals: Any, tangents: Any, *, axis: int) -> Any:
    rowsum = corejax.extend.primitives["toy.rowsum"]
    out = rowsum.bind(primals[0], axis=axis)
    return out, None if tangents[0] is None else rowsum.bind(tangents[0], axis=axis)


def rowsum_vmap(axis_size: int, vals: Any, dims: Any, *, axis: int) -> Any:
    d = dims[0]
    moved = axis + (axis >= d)
    out = corejax.extend.primitives["toy.rowsum"].bind(vals[0], axis=moved)
    return out, d - (moved < d)


def spread(ct: Any, shape: tuple[int, ...], axis: int) -> Any:
    """A new axis of copies."""
    return lax.broadcast_in_dim(ct, shape, tuple(i for i in range(len(shape)) if i != axis))


def rowsum_transpose(ct: Any, x: UndefPrimal, *, axis: int) -> Any:
    return [lax.mul(spread(ct, x.aval.shape, axis), 3.0)]


def rowsum_xla(ctx: Any, in_avals: Any, in_vals: Any, *, axis: int, factor: float = 3.0) -> Any:
    (x,) = in_vals
    aval = rowsum_aval(x.aval.strip_weak_type(), axis=axis)
    scalar = aval.update(shape=())
    body = ctx.region([scalar, scalar], lambda c, a, b: c.op("add", a, b, out=scalar))
    zero = ctx.constant(np.zeros((), aval.dtype))
    total = ctx.op("reduce", x, zero, out=aval, attrs=f"dimensions = array<i64: {axis}>", regions=[body])
    return ctx.op("multiply", total, ctx.full(aval, factor), out=aval)


# -- both --------------------------------------------------------------------------------------------------------


def both_values(x: Any, y: Any) -> Any:
    return [lax.mul(x, lax.cos(x)), lax.mul(x, y)]


def both_partial_eval(trace: Any, args: Any) -> Any:
    x, y = args
    if trace.is_unknown(x):
        return trace.record(corejax.extend.primitives["toy.both"], args, {})
    return [lax.mul(x, lax.cos(x)), trace.record(lax.mul_p, [x, y], {})[0]]


def both_split(unknowns: Any, eqn: JaxprEqn) -> Any:
    x = eqn.invars[0]
    if unknowns[0]:
        return None, eqn, [True, True], []
    known, unknown = both_equations(eqn)
    return known, unknown, [False, True], [x]


def both_equations(eqn: JaxprEqn) -> Any:
    """The equation with both results but the second one unused, and the one for the second result."""
    unused = corejax.extend.Var(eqn.outvars[1].aval)
    known = JaxprEqn(eqn.primitive, [eqn.invars[0], eqn.invars[0]], [eqn.outvars[0], unused], {}, eqn.source_info)
    return known, JaxprEqn(lax.mul_p, list(eqn.invars), [eqn.outvars[1]], {}, eqn.source_info)


Rules = Mapping[str, Callable[..., Any]]
RIGHT: dict[str, Rules] = {
    "toy.mulsin": {
        "impl": lambda x, y: np.multiply(x, np.sin(y)),
        "abstract_eval": same,
        "jvp": mulsin_jvp,
        "vmap": mulsin_vmap,
        "transpose": mulsin_transpose,
        "xla_translation": mulsin_xla,
    },
    "toy.rowsum": {
        "impl": lambda x, *, axis: np.multiply(np.sum(x, axis, dtype=x.dtype), 3, dtype=x.dtype),
        "abstract_eval": rowsum_aval,
        "jvp": rowsum_jvp,
        "vmap": rowsum_vmap,
        "transpose": rowsum_transpose,
        "xla_translation": rowsum_xla,
    },
    "toy.both": {"partial_eval": both_partial_eval, "partial_eval_jaxpr": both_split},
}
_DECLARED: dict[str, dict[str, Any]] = {
    "toy.mulsin": {"linear_in": (0,), "tags": ("elementwise",)},
    "toy.rowsum": {"linear_in": (0,), "tags": ("linear",)},
    "toy.both": {"multiple_results": True, "decomposition": both_values},
}


@contextmanager
def toy(name: str, wrong: Rules | None = None, **declared: Any) -> Iterator[Primitive]:
    """A toy for a `with` block.

    Args:
        name: which one.
        wrong: rules in place of the right ones, by kind.
        declared: what the primitive is built with, in place of the right.
    """
    before = snapshot()
    try:
        primitive = Primitive(name, **{**_DECLARED[name], **declared})
        for kind, rule in {**RIGHT[name], **(wrong or {})}.items():
            flags = {"symbolic_zeros": True} if kind == "jvp" else {}
            registries[kind].register(primitive, rule, **flags)
        yield primitive
    finally:
        restore(before)
