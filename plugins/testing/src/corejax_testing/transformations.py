"""Transformations with their meaning: as corejax does them, and slowly, by evaluating the function.

Functions take and return lists of arrays. A transformation has three parts: the operands of the transformed function
(`inputs`), corejax's transformation (`fast`), and its meaning (`slow`). So any nest can be checked at its outermost
level, whatever the inner transformations are. Batches consist of two sets of valid operands (`both`), since the numbers
of one set in another order need not be valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import corejax
from corejax.extend import get_aval
from corejax.extend.plugins import exported
from corejax_testing.arrays import Array, direction, is_inexact, replaced
from corejax_testing.calls import host
from corejax_testing.finite import difference, gradient, step_and_tolerance

Function = Callable[..., list[Any]]
Both = tuple[list[Array], list[Array]]  # two sets of operands of the same types


@dataclass(frozen=True)
class Transformation:
    """One transformation of list-valued functions.

    Attributes:
        name: the name in reports.
        inputs: makes operands of the transformed function from those of the function: `(fun, both, rng) -> both`.
        fast: corejax's transformation, `(fun, xs) -> transformed`; `xs` are operands of the function, for their types.
        slow: the same transformation by its definition, on NumPy arrays.
        rule: kind of the rule to blame for a wrong result.
        smooth: whether the transformation differentiates.
    """

    name: str
    inputs: Callable[[Function, Both, np.random.Generator], Both]
    fast: Callable[[Function, Sequence[Array]], Function]
    slow: Callable[[Function, Sequence[Array]], Function]
    rule: str
    smooth: bool = False


# -- jit, cond, checkpoint, while ------------------------------------------------------------------------------------


def _same_inputs(fun: Function, both: Both, rng: np.random.Generator) -> Both:
    return both


def _chosen_inputs(fun: Function, both: Both, rng: np.random.Generator) -> Both:
    xs, ys = both
    return [np.asarray(True), *xs], [np.asarray(True), *ys]


def _cond_fast(fun: Function, xs: Sequence[Array]) -> Function:
    from corejax import lax

    return lambda pred, *ys: list(lax.cond(pred, lambda *a: list(fun(*a)), lambda *a: list(fun(*a)), *ys))


def _checkpoint_fast(fun: Function, xs: Sequence[Array]) -> Function:
    return lambda *ys: list(corejax.checkpoint(lambda *a: list(fun(*a)))(*ys))


def _while_fast(fun: Function, xs: Sequence[Array]) -> Function:
    """Return the function as the body of a `while_loop` that runs once."""
    from corejax import lax

    outs = [np.zeros(o.shape, o.dtype) for o in corejax.eval_shape(lambda *a: list(fun(*a)), *xs)]

    def body(state: Any) -> Any:
        count, ys, _ = state
        return count + 1, ys, list(fun(*ys))

    return lambda *ys: list(lax.while_loop(lambda state: state[0] < 1, body, (np.int32(0), list(ys), outs))[2])


# -- vmap, scan: over a batch of two sets of operands ------------------------------------------------------------


def _batches(fun: Function, both: Both, rng: np.random.Generator) -> Both:
    xs, ys = both
    pairs = list(zip(xs, ys, strict=True))
    return [np.stack([x, y]) for x, y in pairs], [np.stack([y, x]) for x, y in pairs]


def _loop(fun: Function, xs: Sequence[Array]) -> Function:
    def looped(*batch: Array) -> list[Array]:
        rows = [host(fun(*(x[k] for x in batch))) for k in range(2)]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    return looped


def _scan_fast(fun: Function, xs: Sequence[Array]) -> Function:
    from corejax import lax

    return lambda *batch: list(lax.scan(lambda carry, row: (carry, list(fun(*row))), (), batch)[1])


# -- derivatives -------------------------------------------------------------------------------------------------


def _smooth(xs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(xs) if is_inexact(get_aval(x).dtype)]


def _part(fun: Function, values: Sequence[Any], which: Sequence[int], outs: Sequence[int]) -> Function:
    def part(*moving: Any) -> list[Any]:
        results = list(fun(*replaced(values, which, moving)))
        return [results[k] for k in outs]

    return part


def _tangent_inputs(fun: Function, both: Both, rng: np.random.Generator) -> Both:
    xs, ys = ([*zs, *(direction(rng, zs[i]) for i in _smooth(zs))] for zs in both)
    return xs, ys


def _cotangent_inputs(fun: Function, both: Both, rng: np.random.Generator) -> Both:
    outs = host(fun(*both[0]))
    xs, ys = ([*zs, *(direction(rng, outs[k]) for k in _smooth(outs))] for zs in both)
    return xs, ys


def _differentiated(make: Callable[[Function, list[Any], list[Any]], list[Any]]) -> Any:
    """Return a transformation to functions of operands followed by tangents or cotangents."""

    def transform(fun: Function, xs: Sequence[Array]) -> Function:
        outs = _smooth(host(fun(*xs)))

        def transformed(*args: Any) -> list[Any]:
            values, extra = list(args[: len(xs)]), list(args[len(xs) :])
            which = _smooth(xs)
            return make(_part(fun, values, which, outs), [values[i] for i in which], extra)

        return transformed

    return transform


def _jvp(fun: Function, xs: list[Any], ts: list[Any]) -> list[Any]:
    return list(corejax.jvp(fun, tuple(xs), tuple(ts))[1])


def _linearize(fun: Function, xs: list[Any], ts: list[Any]) -> list[Any]:
    return list(corejax.linearize(fun, *xs)[1](*ts))


def _vjp(fun: Function, xs: list[Any], cts: list[Any]) -> list[Any]:
    return list(corejax.vjp(fun, *xs)[1](cts))


def _difference(fun: Function, xs: list[Any], ts: list[Any]) -> list[Any]:
    return difference(fun, xs, ts, step_and_tolerance([*xs, *host(fun(*xs))])[0])


def _gradient(fun: Function, xs: list[Any], cts: list[Any]) -> list[Any]:
    return gradient(fun, xs, cts, step_and_tolerance([*xs, *host(fun(*xs))])[0])


JIT = Transformation("jit", _same_inputs, lambda f, xs: corejax.jit(lambda *a: list(f(*a))), lambda f, xs: f,
                     "xla_translation")  # fmt: skip
VMAP = Transformation("vmap", _batches, lambda f, xs: corejax.vmap(lambda *a: list(f(*a))), _loop, "vmap")
JVP = Transformation("jvp", _tangent_inputs, _differentiated(_jvp), _differentiated(_difference), "jvp", True)
LINEARIZE = Transformation("linearize", _tangent_inputs, _differentiated(_linearize), _differentiated(_difference),
                           "jvp", True)  # fmt: skip
GRAD = Transformation("grad", _cotangent_inputs, _differentiated(_vjp), _differentiated(_gradient), "transpose", True)
COND = Transformation("cond", _chosen_inputs, _cond_fast,
                      lambda f, xs: lambda pred, *ys: f(*ys), "partial_eval_jaxpr")  # fmt: skip
SCAN = Transformation("scan", _batches, _scan_fast, _loop, "partial_eval_jaxpr")
CHECKPOINT = Transformation("checkpoint", _same_inputs, _checkpoint_fast, lambda f, xs: f, "partial_eval_jaxpr")
WHILE = Transformation("while", _same_inputs, _while_fast, lambda f, xs: f, "jvp")

# The exported names of the transformations that plugins provide.
EXPORTS = {"jit": "jit", "cond": "lax.cond", "scan": "lax.scan", "while": "lax.while_loop", "checkpoint": "checkpoint"}


def is_installed(transformation: Transformation) -> bool:
    """Return whether the kernel or an installed plugin provides a transformation."""
    name = EXPORTS.get(transformation.name)
    return name is None or exported(name) is not None
