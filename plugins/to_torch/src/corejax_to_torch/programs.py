"""The corejax programs that a kernel runs: the program of a function, and the programs of its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corejax import lax
from corejax.extend import (
    ClosedJaxpr,
    Jaxpr,
    ShapedArray,
    dtypes,
    inline_closed,
    jvp_jaxpr,
    memoised,
    partial_eval_jaxpr,
    spread_list,
    stage_closed,
    transpose_jaxpr,
)
from corejax.extend.programs import select_list

Flags = tuple[bool, ...]


@dataclass(frozen=True)
class Linearised:
    """The linearisation of a program `a -> b`.

    Attributes:
        known: `a -> (b, residuals)`, without residuals that are arguments or results.
        linear: `(residuals, T a) -> T b`, for the arguments and results that have tangents.
        residuals: for each residual, whether it is an argument, and the index of the argument or of the output of
            `known`.
        nonzeros_out: whether each result has a tangent.
    """

    known: ClosedJaxpr
    linear: ClosedJaxpr
    residuals: tuple[tuple[bool, int], ...]
    nonzeros_out: Flags


def linearised(closed: ClosedJaxpr, nonzeros: Flags) -> Linearised:
    """Split a program's derivative into the part that does not need tangents and the linear part; memoised."""

    def make() -> Linearised:
        both, nonzeros_out = jvp_jaxpr(closed, nonzeros)
        unknown = [False] * len(nonzeros) + [True] * sum(nonzeros)
        unknown_out = [False] * len(nonzeros_out) + [True] * sum(nonzeros_out)
        known, linear, *_ = partial_eval_jaxpr(both, unknown, unknown_out)
        count = len(nonzeros_out)
        # A residual that is an argument or a result needs no additional output.
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
    """Return the program `(residuals, tangents) -> tangents` for results of inexact dtypes; memoised."""
    split = linearised(closed, nonzeros)

    def make() -> ClosedJaxpr:
        def flat(*args: Any) -> list[Any]:
            tangents_out = spread_list(split.nonzeros_out, inline_closed(split.linear, args))
            pairs = zip(tangents_out, closed.out_avals, strict=True)
            return [_zeros(a) if t is None else t for t, a in pairs if dtypes.is_inexact(a.dtype)]

        return stage_closed(flat, split.linear.in_avals)

    return memoised(closed, ("to_torch.tangents", nonzeros), make)


def gradients(closed: ClosedJaxpr, nonzeros: Flags, has_ct: Flags) -> ClosedJaxpr:
    """Return the program `(residuals, cotangents) -> cotangents`, memoised.

    Cotangents follow PyTorch's convention: those of complex numbers are the conjugates of corejax's.

    Args:
        closed: the program.
        nonzeros: whether each argument has a cotangent.
        has_ct: whether each result has a cotangent.
    """
    split = linearised(closed, nonzeros)
    used = [has for has, nonzero in zip(has_ct, split.nonzeros_out, strict=True) if nonzero]

    def make() -> ClosedJaxpr:
        count = sum(nonzeros)
        residual_avals = split.linear.in_avals[: len(split.linear.in_avals) - count]
        is_linear = [False] * len(residual_avals) + [True] * count
        transposed, nonzeros_in = transpose_jaxpr(split.linear, is_linear, used)
        argument_avals = select_list(nonzeros, closed.in_avals)

        def flat(*args: Any) -> list[Any]:
            residuals, cts = args[: len(residual_avals)], spread_list(has_ct, args[len(residual_avals) :])
            given = [_conj(ct) for ct, nonzero in zip(cts, split.nonzeros_out, strict=True) if nonzero]
            cts_in = inline_closed(transposed, [*residuals, *(ct for ct in given if ct is not None)])
            pairs = zip(spread_list(nonzeros_in, cts_in), argument_avals, strict=True)
            return [_zeros(a) if ct is None else _conj(ct) for ct, a in pairs]

        ct_avals = [a.strip_weak_type() for a in select_list(has_ct, closed.out_avals)]
        return stage_closed(flat, [*residual_avals, *ct_avals])

    return memoised(closed, ("to_torch.gradients", nonzeros, has_ct), make)


def recomputed_gradients(closed: ClosedJaxpr, nonzeros: Flags, has_ct: Flags) -> ClosedJaxpr:
    """Return the program `(arguments, cotangents) -> cotangents`, which recomputes the residuals; memoised."""
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
