"""Check derivatives at special points: zeros, ties, negative bases, saturation, large arguments.

At a point with a derivative, the tangent must be that derivative. If the slopes on the two sides differ, as at ties,
the tangent must lie between them along every direction, so two tied operands cannot both receive the whole tangent.
Points at which a slope is not finite are not checked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import corejax
from corejax_testing.arrays import Array, compare, direction, is_inexact, wide
from corejax_testing.calls import Call, host
from corejax_testing.checks.derivatives import pushed
from corejax_testing.checks.dtypes import differentiable
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure, NotApplicable
from corejax_testing.special_points import is_free_elementwise, special_grid, special_patterns

# The step of the differences (a power of two, so that adding it to large numbers is exact), and the slack for rounding:
# relative to the slopes, relative to the function's value, and absolute. The truncation error is estimated by the
# difference between the slopes at the usual and at a finer step.
_PRECISION = {"float64": (2.0**-17, 3e-4, 5e-10, 1e-10), "float32": (2.0**-7, 3e-2, 2e-3, 2e-3)}
_PARTS = (0.25, 0.6, 0.1)  # finer steps, of which one has to confirm the tangent
_ALONE = 4  # the number of operands up to which each is moved by itself
_HINT = "at ties share the tangent; at zeros and large arguments look for 0/0, 0 * inf, log(0), inf - inf"


@check("points", "jvp", limit=4)
def check_points(call: Call, rng: np.random.Generator) -> None:
    """Check that tangents and cotangents at zeros, ties, negative and large numbers lie between one-sided slopes."""
    differentiable(call)
    call = call.widened()
    inexact = [*(call.avals[i] for i in call.inexact), *(a for a in call.avals_out if is_inexact(a.dtype))]
    if len({a.dtype for a in inexact}) > 1 or inexact[0].dtype.name not in _PRECISION:
        raise NotApplicable("an operand or result is neither float64 nor float32, or they differ")
    tried = False
    for name, there in _special(call):
        try:
            fun, xs, _ = there.moving()
            outs = host(fun(*xs))
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):  # outside the function's domain
            continue
        _check_slopes(there, name, outs, rng)
        tried = True
    if not tried:
        raise NotApplicable("no operand that may be any number")


def _special(call: Call) -> Iterator[tuple[str, Call]]:
    grid = special_grid(call) if is_free_elementwise(call) else None
    if grid is not None:
        yield "", grid
    else:
        yield from special_patterns(call)


def _check_slopes(call: Call, name: str, outs: Sequence[Array], rng: np.random.Generator) -> None:
    fun, xs, _ = call.moving()
    found = []
    for along, ts in _directions(xs, rng):
        values, tangents = pushed(fun, xs, ts)
        found.append(tangents)
        for value, right in zip(values, outs, strict=True):
            compare_where_finite(value, right, f"a result of the jvp rule{_with(name)}", "jvp")
        slopes = _slopes(fun, xs, ts, outs, 1.0)
        for part in _PARTS:
            try:
                finer = _slopes(fun, xs, ts, outs, part)
                for i, (value, tangent) in enumerate(zip(outs, tangents, strict=True)):
                    require_between(tangent, slopes[i], finer[i], value, f"tangent {i}{_with(name)}{along}", call)
                break
            except CheckFailure:
                if part == _PARTS[-1]:  # no finer step confirms the tangent
                    raise
    if 1 < len(xs) <= _ALONE:
        _require_sum(found[: len(xs)], found[len(xs)], _with(name))
    _check_pullback(call, name, found)


def _largest(dtype: Any) -> float:
    """Return the number beyond which a value counts as diverging and is not checked."""
    largest: float = float(np.finfo(dtype).max) ** 0.25
    return largest


def _require_sum(alone: Sequence[Sequence[Array]], together: Sequence[Array], where: str) -> None:
    """Require the tangents along each operand alone to add up to the tangent along all, unless they diverge.

    Raises:
        CheckFailure: the sum differs.
    """
    for i, (got, *terms) in enumerate(zip(together, *alone, strict=True)):
        with np.errstate(all="ignore"):
            right, size = sum(terms), sum(map(np.abs, terms))
            off = (size < _largest(got.dtype)) & ~(np.abs(got - right) <= 1e-4 * np.maximum(size, 1e-30))
        if off.any():
            k = np.unravel_index(int(np.argmax(off)), off.shape)
            raise CheckFailure(f"tangent {i}{where} along all operands is {got[k].item()!r}, but the sum of those "
                               f"along each is {np.asarray(right)[k].item()!r}", "jvp", _HINT)  # fmt: skip


def _slopes(fun: Any, xs: Sequence[Array], ts: Sequence[Any], outs: Sequence[Array], part: float) -> list[list[Array]]:
    """Return the two one-sided difference quotients of each result, for a fraction of the usual step."""
    step = xs[0].dtype.type(_PRECISION[xs[0].dtype.name][0] * part)
    after, before = (host(fun(*_moved(xs, ts, sign * step))) for sign in (1, -1))
    with np.errstate(all="ignore"):
        return [[(a - y) / step, (y - b) / step] for a, y, b in zip(after, outs, before, strict=True)]


def _with(name: str) -> str:
    return f", with {name}," if name else ""


def _directions(xs: Sequence[Array], rng: np.random.Generator) -> Iterator[tuple[str, list[Any]]]:
    """Yield directions: each operand alone, all together, one against the others, and a random direction."""
    ones = [np.ones_like(x) for x in xs]
    if len(xs) > 1:
        for k in range(min(len(xs), _ALONE)):
            yield f" along operand {k} alone", [t if i == k else None for i, t in enumerate(ones)]
    yield " along ones", list(ones)
    if len(xs) > 1:
        yield " along the difference", [-t if i else t for i, t in enumerate(ones)]
    yield "", [np.asarray(np.round(direction(rng, x) * 8) / 8, x.dtype) for x in xs]


def _moved(xs: Sequence[Array], ts: Sequence[Any], step: float) -> list[Array]:
    return [x if t is None else np.asarray(x + step * t, x.dtype) for x, t in zip(xs, ts, strict=True)]


def require_between(
    tangent: Array, slopes: Sequence[Array], finer: Sequence[Array], value: Array, what: str, call: Call
) -> None:
    """Require a tangent to lie between two slopes, at elements at which all are finite and a finer step agrees.

    Raises:
        CheckFailure: an element lies outside.
    """
    low, high = np.minimum(*slopes), np.maximum(*slopes)
    step, relative, noise, least = _PRECISION[value.dtype.name]
    with np.errstate(all="ignore"):
        top = _largest(value.dtype)
        ok = (np.abs(low) < top) & (np.abs(high) < top) & (np.abs(value) < top)
        size = np.maximum(np.abs(low), np.abs(high))
        slack = (relative * size + noise * np.abs(value) + least) * call.example.tolerance
        left = functools.reduce(np.maximum, [np.abs(slope - again) for slope, again in zip(slopes, finer, strict=True)])
        ok &= left <= 0.1 * size + slack + step
        slack = slack + 4 * left
        off = ok & ~((tangent >= low - slack) & (tangent <= high + slack))
    if not off.any():
        return
    at = np.unravel_index(int(np.argmax(off)), off.shape)
    where = f"[{', '.join(map(str, at))}]" if at else ""
    numbers = ""
    if is_free_elementwise(call):
        numbers = f" ({', '.join(repr(x[at].item()) for x in call.values)})"
    a, b = low[at].item(), high[at].item()
    right = f"{a!r}" if a == b else f"between {a!r} and {b!r}"
    message = (
        f"{what} is {tangent[at].item()!r} at {where or 'its only point'}{numbers}; {right} is right, by differences"
    )
    raise CheckFailure(message, "jvp", _HINT)


def compare_where_finite(got: Array, wanted: Array, what: str, rule: str) -> None:
    """Compare as `compare` does, but only elements at which the right numbers are finite."""
    if got.shape == wanted.shape:
        ok = np.isfinite(wide(wanted))
        got, wanted = (np.where(ok, x, np.zeros((), x.dtype)) for x in (got, wanted))
    compare(got, wanted, what, rule)


def _check_pullback(call: Call, name: str, tangents: Sequence[Sequence[Array]]) -> None:
    """Require cotangents to be finite if tangents are, and for elementwise primitives to equal the tangents."""
    if "vjp" in call.example.skip or "vjp" in call.example.fails:
        return
    fun, xs, _ = call.moving()
    outs, pull = corejax.vjp(lambda *a: fun(*a), *xs)
    back = host(pull([np.ones(y.shape, y.dtype) for y in outs]))
    for k, ct in enumerate(back):
        what = f"cotangent of operand {call.inexact[k]}{_with(name)}"
        if is_free_elementwise(call) and len(tangents[0]) == 1:
            alone = tangents[k][0]
            compare_where_finite(ct, np.broadcast_to(alone, ct.shape), what, "transpose")
        elif all(np.all(np.isfinite(t)) for ts in tangents for t in ts) and not np.all(np.isfinite(ct)):
            raise CheckFailure(f"{what} is not finite, though tangents are", "transpose", _HINT)
