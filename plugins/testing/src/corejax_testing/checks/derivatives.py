"""Check the jvp rule: finite differences, linearity in tangents, symbolic zeros, linearize, second order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import jvp_flat, jvp_rules, partial_eval_rules, partition_list
from corejax.extend.programs import select_list
from corejax_testing.arrays import Array, compare, compare_each, direction, largest, wide
from corejax_testing.calls import Call, host
from corejax_testing.checks.registry import check
from corejax_testing.finite import difference, require_adjoint, step_and_tolerance
from corejax_testing.outcomes import NotApplicable


def pushed(fun: Any, xs: Sequence[Any], ts: Sequence[Any]) -> tuple[list[Array], list[Array]]:
    """Return the results and tangents of a list-valued function, with arrays in place of symbolic zeros."""
    outs, tangents = jvp_flat(fun, xs, ts)
    values = host(outs)
    return values, [np.zeros_like(o) if t is None else np.asarray(t) for o, t in zip(values, tangents, strict=True)]


def needs_jvp(call: Call) -> None:
    """Require a jvp rule, own or derived, and an operand that is not empty."""
    _, xs, outs = call.moving()
    if not any(x.size for x in xs) and any(call.avals_out[i].size for i in outs):
        raise NotApplicable("the operands are empty")
    jvp_rules.lookup(call.primitive)


@check("jvp", "jvp", shapes=True)
def check_jvp(call: Call, rng: np.random.Generator) -> None:
    """Check that the jvp rule's tangents agree with finite differences, and its results with impl."""
    needs_jvp(call)
    call = call.widened()
    fun, xs, _ = call.moving()
    ts = [direction(rng, x) for x in xs]
    wanted = host(fun(*xs))
    step, allowed = step_and_tolerance([*xs, *wanted])
    for which, along in _directions(call, ts):
        outs, tangents = pushed(fun, xs, along)
        real = [np.zeros_like(x) if t is None else t for x, t in zip(xs, along, strict=True)]
        differences, coarser = (difference(fun, xs, real, h) for h in (step, 2 * step))
        for i, (out, right) in enumerate(zip(outs, wanted, strict=True)):
            compare(out, right, f"result {i} of the jvp rule", "jvp")
            # The function's own rounding errors, and the error of the difference, which grows with its step.
            terms = largest(right) + largest(wide(coarser[i]) - wide(differences[i])) / allowed
            compare(*_where_finite(tangents[i], differences[i], right), f"tangent {i} of the jvp rule{which}", "jvp",
                    allowed=allowed, scale=call.example.tolerance, terms=terms)  # fmt: skip


def _directions(call: Call, ts: Sequence[Array]) -> Iterator[tuple[str, list[Any]]]:
    """Yield tangents of each operand alone, which shows the wrong term, then of all operands together."""
    if len(ts) > 1:
        for k in range(min(len(ts), 4)):
            yield f", of operand {call.inexact[k]} alone,", [t if i == k else None for i, t in enumerate(ts)]
    yield "", list(ts)


def _where_finite(tangent: Array, right: Array, value: Array) -> tuple[Array, Array]:
    """Return tangent and difference with zeros where the function or the difference is not finite."""
    if tangent.shape != right.shape or tangent.dtype != right.dtype:
        return tangent, right
    ok = np.isfinite(right) & np.isfinite(value)
    return np.where(ok, tangent, 0).astype(right.dtype), np.where(ok, right, 0).astype(right.dtype)


@check("linearity", "jvp", shapes=True)
def check_linearity(call: Call, rng: np.random.Generator) -> None:
    """Check that the jvp rule is linear in the tangents."""
    needs_jvp(call)
    call = call.widened()
    fun, xs, _ = call.moving()
    s, t = ([direction(rng, x) for x in xs] for _ in range(2))
    both = [np.asarray(2 * a + b).astype(a.dtype) for a, b in zip(s, t, strict=True)]
    (_, of_s), (_, of_t), (_, of_both) = (pushed(fun, xs, each) for each in (s, t, both))
    with np.errstate(all="ignore"):
        right = [np.asarray(2 * a + b).astype(c.dtype) for a, b, c in zip(of_s, of_t, of_both, strict=True)]
        compare_each(of_both, right, "tangent", " for 2 s + t", "jvp", scale=100)


@check("zeros", "jvp", shapes=True)
def check_symbolic_zeros(call: Call, rng: np.random.Generator) -> None:
    """Check that a symbolic zero tangent (None) gives the same as an array of zeros."""
    needs_jvp(call)
    fun, xs, _ = call.moving()
    ts = [direction(rng, x) for x in xs]
    for kept in itertools.product((True, False), repeat=min(len(xs), 4)):
        flags = [*kept, *[True] * (len(xs) - len(kept))]
        symbolic = pushed(fun, xs, [t if keep else None for t, keep in zip(ts, flags, strict=True)])[1]
        real = pushed(fun, xs, [t if keep else np.zeros_like(t) for t, keep in zip(ts, flags, strict=True)])[1]
        zero = partition_list(flags, call.inexact)[0]
        compare_each(symbolic, real, "tangent", f", with symbolic zeros for operands {zero},", "jvp")


@check("linearize", "jvp", shapes=True)
def check_linearize(call: Call, rng: np.random.Generator) -> None:
    """Check that linearize agrees with jvp, for every subset of the operands."""
    needs_jvp(call)
    fun, xs, _ = call.moving()
    ts = [direction(rng, x) for x in xs]
    # jvp runs the same jvp rule. If the two differ and there is an own partial_eval rule, that rule is at fault.
    rule = "jvp" if partial_eval_rules.rule_of(call.primitive) is None else "partial_eval"
    for chosen in itertools.product((True, False), repeat=min(len(xs), 4)):
        flags = [*chosen, *[False] * (len(xs) - len(chosen))]
        if not any(flags):
            continue

        def part(*moving: Any, flags: list[bool] = flags) -> list[Any]:
            rest = iter(moving)
            return fun(*(next(rest) if keep else x for x, keep in zip(xs, flags, strict=True)))

        some = select_list(flags, xs)
        along = select_list(flags, ts)
        outs, linear = corejax.linearize(part, *some)
        want_outs, wanted = pushed(part, some, along)
        names = select_list(flags, call.inexact)
        compare_each(host(outs), want_outs, "result", f" of linearize in operands {names}", rule)
        compare_each(host(linear(*along)), wanted, "tangent", f" of linearize in operands {names}", rule, scale=4)


@check("second_order", "jvp", limit=4)
def check_second_order(call: Call, rng: np.random.Generator) -> None:
    """Check second derivatives by finite differences: forward and reverse mode, in every order."""
    needs_jvp(call)
    call = call.widened()
    fun, xs, _ = call.moving()
    ts = [direction(rng, x) for x in xs]
    cts = [direction(rng, y) for y in host(fun(*xs))]
    step, allowed = step_and_tolerance([*xs, *cts], order=2)

    def tangent(*at: Any) -> list[Any]:
        found = corejax.jvp(lambda *a: fun(*a), at, tuple(ts))[1]
        return list(found)

    def cotangents(*at: Any) -> list[Any]:
        return list(corejax.vjp(lambda *a: fun(*a), *at)[1](list(cts)))

    for name, first, rule in (("jvp", tangent, "jvp"), ("vjp", cotangents, "transpose")):
        us = [direction(rng, x) for x in xs]
        outs, got = pushed(first, xs, us)
        for i, (a, b) in enumerate(zip(got, difference(first, xs, us, step), strict=True)):
            compare(*_where_finite(a, b, b), f"derivative {i} in jvp of {name}", rule, allowed=allowed,
                    scale=call.example.tolerance)  # fmt: skip
        ws = [direction(rng, y) for y in outs]
        back = host(corejax.vjp(lambda *a, first=first: first(*a), *xs)[1](ws))
        if all(np.all(np.isfinite(wide(x))) for x in (*got, *back)):
            require_adjoint((ws, got), (back, us), (*xs, *outs),
                            f"inner products of vjp of {name} and of jvp of {name} differ")  # fmt: skip
