"""The corejax programs that a kernel runs: a function's own, and those of its derivatives and batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import corejax
from corejax import lax
from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    ShapedArray,
    dtypes,
    inline_closed,
    jaxpr_as_fun,
    jvp_jaxpr,
    memoised,
    partial_eval_jaxpr,
    spread_list,
    stage_closed,
    transpose_jaxpr,
)
from corejax.extend.programs import select_list

Flags = tuple[bool, ...]


def compiled(closed: ClosedJaxpr) -> Callable[..., Sequence[Any]]:
    """Return a program compiled, memoised."""
    found = closed.memo.get("to_torch.compiled")
    if found is None:
        found = closed.memo["to_torch.compiled"] = corejax.jit(jaxpr_as_fun(closed))
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Linearised:
    """A program `a -> b` with what its derivatives need.

    Attributes:
        known: `a -> (b, some residuals)`.
        linear: `(residuals, T a) -> T b`, of the arguments and results that have tangents.
        residuals: for each residual whether it is an argument, and the index of this or of the output of `known`.
        nonzeros_out: which results have tangents.
    """

    known: ClosedJaxpr
    linear: ClosedJaxpr
    residuals: tuple[tuple[bool, int], ...]
    nonzeros_out: Flags


def linearised(closed: ClosedJaxpr, nonzeros: Flags) -> Linearised:
    """Split a program's derivative into the part that is known without tangents, and the linear part; memoised."""

    def make() -> Linearised:
        both, nonzeros_out = jvp_jaxpr(closed, nonzeros)
        unknown = [False] * len(nonzeros) + [True] * sum(nonzeros)
        unknown_out = [False] * len(nonzeros_out) + [True] * sum(nonzeros_out)
        known, linear, *_ = partial_eval_jaxpr(both, unknown, unknown_out)
        count = len(nonzeros_out)
        # A residual that is an argument or a result need not be an output of its own.
        outvars = list(known.jaxpr.outvars[:count])
        arguments = {v: i for i, v in enumerate(known.jaxpr.invars)}
        residuals = []
        for v in known.jaxpr.outvars[count:]:
            if v in arguments:
                residuals.append((True, arguments[v]))
                continue
            if v not in outvars:
                outvars.append(v)
            residuals.append((False, outvars.index(v)))
        jaxpr = known.jaxpr
        trimmed = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns, outvars, jaxpr.debug_info)
        return Linearised(ClosedJaxpr(trimmed, known.consts), linear, tuple(residuals), tuple(nonzeros_out))

    return memoised(closed, ("to_torch.linearised", nonzeros), make)


def residuals_of(split: Linearised, args: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    """Return the residuals from the arguments and outputs of `split.known`."""
    return [args[i] if is_argument else outs[i] for is_argument, i in split.residuals]


def tangents(closed: ClosedJaxpr, nonzeros: Flags) -> ClosedJaxpr:
    """Return the program `(residuals, tangents) -> tangents` of the results that are numbers; memoised."""
    split = linearised(closed, nonzeros)

    def make() -> ClosedJaxpr:
        def flat(*args: Any) -> list[Any]:
            moved = spread_list(split.nonzeros_out, inline_closed(split.linear, args))
            pairs = zip(moved, closed.out_avals, strict=True)
            return [_zeros(a) if t is None else t for t, a in pairs if dtypes.is_inexact(a.dtype)]

        return stage_closed(flat, split.linear.in_avals)

    return memoised(closed, ("to_torch.tangents", nonzeros), make)


def gradients(closed: ClosedJaxpr, nonzeros: Flags, has_ct: Flags) -> ClosedJaxpr:
    """Return the program `(residuals, cotangents) -> cotangents`, memoised.

    PyTorch's cotangents of complex numbers are the conjugates of corejax's.

    Args:
        closed: the program.
        nonzeros: which arguments have cotangents.
        has_ct: which results have cotangents.
    """
    split = linearised(closed, nonzeros)
    used = [has for has, nonzero in zip(has_ct, split.nonzeros_out, strict=True) if nonzero]

    def make() -> ClosedJaxpr:
        moving = sum(nonzeros)
        residual_avals = split.linear.in_avals[: len(split.linear.in_avals) - moving]
        is_linear = [False] * len(residual_avals) + [True] * moving
        transposed, nonzeros_in = transpose_jaxpr(split.linear, is_linear, used)
        argument_avals = select_list(nonzeros, closed.in_avals)

        def flat(*args: Any) -> list[Any]:
            residuals, cts = args[: len(residual_avals)], spread_list(has_ct, args[len(residual_avals) :])
            given = [_conj(ct) for ct, nonzero in zip(cts, split.nonzeros_out, strict=True) if nonzero]
            found = inline_closed(transposed, [*residuals, *(ct for ct in given if ct is not None)])
            every = spread_list(nonzeros_in, found)
            pairs = zip(every, argument_avals, strict=True)
            return [_zeros(a) if ct is None else _conj(ct) for ct, a in pairs]

        ct_avals = [a.strip_weak_type() for a in select_list(has_ct, closed.out_avals)]
        return stage_closed(flat, [*residual_avals, *ct_avals])

    return memoised(closed, ("to_torch.gradients", nonzeros, has_ct), make)


def recomputed_gradients(closed: ClosedJaxpr, nonzeros: Flags, has_ct: Flags) -> ClosedJaxpr:
    """Return the program `(arguments, cotangents) -> cotangents`, which computes the residuals again; memoised."""
    split = linearised(closed, nonzeros)
    backward = gradients(closed, nonzeros, has_ct)

    def make() -> ClosedJaxpr:
        count = len(closed.in_avals)

        def flat(*args: Any) -> list[Any]:
            outs = inline_closed(split.known, args[:count])
            return list(inline_closed(backward, [*residuals_of(split, args[:count], outs), *args[count:]]))

        ct_avals = [a.strip_weak_type() for a in select_list(has_ct, closed.out_avals)]
        return stage_closed(flat, [*closed.in_avals, *ct_avals])

    return memoised(closed, ("to_torch.recomputed", nonzeros, has_ct), make)


def _conj(ct: Any) -> Any:
    return lax.conj(ct) if ct is not None and dtypes.is_complex(ct.dtype) else ct


def _zeros(aval: ShapedArray) -> Any:
    return lax.full(aval.shape, 0, aval.dtype)
