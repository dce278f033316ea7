"""Check derivatives in each floating-point dtype: wide dtypes by differences, narrow ones against wide ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import corejax
from corejax_testing.arrays import Array, compare, direction, is_inexact, tolerance, wide
from corejax_testing.calls import Call, host
from corejax_testing.checks.derivatives import check_jvp, needs_jvp, pushed
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import NotApplicable
from corejax_testing.special_points import is_free_elementwise, special_grid

_NARROW = 3  # allowed rounding errors of several operations, in units of the dtype's tolerance
_HINT = "only one dtype is wrong: look for code that depends on it (a constant, a cast, a case for complex numbers)"


def differentiable(call: Call) -> None:
    """Require a jvp rule that computes the function's derivative.

    Raises:
        NotApplicable: the call has no derivative, or the example skips or fails the check `jvp`.
    """
    for reasons in (call.example.skip, call.example.fails):
        if "jvp" in reasons:
            raise NotApplicable(reasons["jvp"])
    needs_jvp(call)


@check("derivative_dtypes", "jvp", dtypes=True)
def check_derivative_dtypes(call: Call, rng: np.random.Generator) -> None:
    """Check tangents and cotangents in each dtype against wider dtypes, and complex ones by differences."""
    differentiable(call)
    if any(x.dtype.kind == "c" for x in call.values):
        check_jvp(call, rng)
    wider = call.widened()
    if all(x.dtype == y.dtype for x, y in zip(call.values, wider.values, strict=True)):
        return
    require_as_wide(call, wider, rng)
    grid = special_grid(call) if is_free_elementwise(call) else None
    if grid is not None:
        _require_as_wide_at_special_points(grid, grid.widened())


def _require_as_wide_at_special_points(call: Call, wider: Call) -> None:
    """Require tangents at zeros, saturation and large arguments to agree with wider dtypes, far from overflow.

    Raises:
        CheckFailure: a tangent differs from that of the wider dtype.
    """
    (fun, xs, _), (wide_fun, wide_xs, _) = call.moving(), wider.moving()
    for k in range(len(xs)):
        ts, wide_ts = ([np.ones_like(x) if i == k else None for i, x in enumerate(each)] for each in (xs, wide_xs))
        values, tangents = pushed(fun, xs, ts)
        wide_values, wide_tangents = pushed(wide_fun, wide_xs, wide_ts)
        for i, (value, t, right) in enumerate(zip(wide_values, tangents, wide_tangents, strict=True)):
            top = float(ml_dtypes.finfo(t.dtype).max) ** 0.5  # type: ignore[no-untyped-call]  # ml_dtypes is untyped
            ok = (np.abs(value) < top) & (np.abs(right) < top) & np.isfinite(wide(values[i]))
            a, b = (np.where(ok, x.astype(t.dtype), np.zeros((), t.dtype)) for x in (t, right))
            compare(a, b, f"tangent {i} in {t.dtype.name} along operand {call.inexact[k]} at special points, against "
                    "wider numbers,", "jvp", scale=_NARROW * call.example.tolerance)  # fmt: skip


def require_as_wide(call: Call, wider: Call, rng: np.random.Generator) -> None:
    """Require tangents and cotangents of a call to be those of the same one with wider numbers, rounded.

    Raises:
        CheckFailure: they differ.
    """
    (fun, xs, outs), (wide_fun, wide_xs, wide_outs) = call.moving(), wider.moving()
    if outs != wide_outs:
        raise NotApplicable("which results are floating-point numbers depends on the operands' dtypes")
    ts = [direction(rng, x) for x in xs]
    values, tangents = pushed(fun, xs, ts)
    wide_values, wide_tangents = pushed(wide_fun, wide_xs, _widened(ts, wide_xs))
    narrow = max((x.dtype for x in (*xs, *values)), key=tolerance)
    _agree(values, wide_values, "result {} of the jvp rule", narrow, "jvp", call)
    _agree(tangents, wide_tangents, "tangent {}", narrow, "jvp", call)
    cts = [direction(rng, y) for y in values]
    if "reverse_only" not in call.primitive.tags and call.leaves_out("vjp"):
        return
    back = host(corejax.vjp(lambda *a: fun(*a), *xs)[1](cts))
    wide_back = host(corejax.vjp(lambda *a: wide_fun(*a), *wide_xs)[1](_widened(cts, wide_values)))
    _agree(back, wide_back, "cotangent {}", narrow, "transpose", call)


def _widened(xs: Sequence[Array], like: Sequence[Array]) -> list[Array]:
    return [x.astype(y.dtype) for x, y in zip(xs, like, strict=True)]


def _agree(got: Sequence[Array], wanted: Sequence[Array], what: str, narrow: Any, rule: str, call: Call) -> None:
    for i, (x, right) in enumerate(zip(got, wanted, strict=True)):
        if not is_inexact(x.dtype) or x.shape != right.shape:
            continue  # other checks report wrong types
        a, b = x, right.astype(x.dtype)
        ok = np.isfinite(wide(b)) & np.isfinite(right)
        a, b = (np.where(ok, each, np.zeros((), each.dtype)) for each in (a, b))
        compare(a, b, f"{what.format(i)} in {x.dtype.name}, against wider numbers,", rule,
                allowed=max(tolerance(narrow), tolerance(x.dtype)), scale=_NARROW * call.example.tolerance)  # fmt: skip
