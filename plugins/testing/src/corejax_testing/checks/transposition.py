"""Check transposition by inner products: the transpose rule itself, and vjp."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import MissingRuleError, UndefPrimal, as_array, is_undef_primal, transpose_rules
from corejax.extend.messages import NotLinearError
from corejax_testing.arrays import Array, compare, compare_each, direction, is_inexact, replaced, tolerance, wide
from corejax_testing.calls import Call, host
from corejax_testing.checks.derivatives import needs_jvp, pushed
from corejax_testing.checks.registry import check
from corejax_testing.diagnosis import diagnose
from corejax_testing.finite import require_adjoint
from corejax_testing.operands import admits
from corejax_testing.outcomes import CheckFailure, NotApplicable


@check("transpose", "transpose", shapes=True)
def check_transpose(call: Call, rng: np.random.Generator) -> None:
    """Check that the transpose rule is the adjoint, for every set of operands that the primitive is linear in."""
    declared = call.primitive.linear_in
    rule = transpose_rules.find(call.primitive)
    if rule is None:
        raise NotApplicable("no transpose rule")
    call = call.widened()
    outs = [is_inexact(a.dtype) for a in call.avals_out]
    if not all(outs) or not call.inexact:
        raise NotApplicable("an operand or result is not a floating-point number")
    for i in set(declared) & set(call.inexact):
        if _can_be_anything(call, (i,), rng) and not _is_linear(call, (i,), rng):
            made = call.primitive.provenance
            hint = f"remove it from linear_in in the primitive's definition ({made.file}:{made.line})"
            raise CheckFailure(f"it is declared linear in operand {i}, but is not", None, hint)
    tried = False
    for count in range(1, min(len(call.inexact), 3) + 1):
        for chosen in itertools.combinations(call.inexact, count):
            fits = declared and not set(chosen) <= set(declared)
            moved: list[Any] = [*call.avals_out, *(call.values[i] for i in chosen)]
            empty = not all(x.size for x in moved)  # every function of empty arrays is linear
            vacuous = empty and not (count == 1 and set(chosen) <= set(declared))
            if fits or vacuous or not _can_be_anything(call, chosen, rng):
                continue
            if count > 1 and _is_zero(call, chosen, rng):
                continue  # a product of padding is linear in both operands together
            if _is_linear(call, chosen, rng):
                tried |= _check_transposed(call, rule, chosen, rng)
    if not tried:
        raise NotApplicable("not linear in any operand")


def _is_zero(call: Call, chosen: Sequence[int], rng: np.random.Generator) -> bool:
    found = _linear_part(call, chosen, [direction(rng, call.values[i]) for i in chosen])
    return not any(np.any(x) for x in found)


def _linear_part(call: Call, chosen: Sequence[int], ts: Sequence[Array]) -> list[Array]:
    """Return the results at some operands minus the results at zeros in their place."""
    values, at_zero = (replaced(call.values, chosen, new) for new in (ts, map(np.zeros_like, ts)))
    with np.errstate(all="ignore"):
        pairs = zip(host(call(*values)), host(call(*at_zero)), strict=True)
        return [np.asarray(a - b).astype(a.dtype) for a, b in pairs]


def _can_be_anything(call: Call, chosen: Sequence[int], rng: np.random.Generator) -> bool:
    """Return whether the example admits arbitrary numbers, including zeros, as these operands."""
    for make in (lambda x: direction(rng, x), np.zeros_like):
        if not admits(call.example, [make(x) if i in chosen else x for i, x in enumerate(call.values)]):
            return False
    return True


def _is_linear(call: Call, chosen: Sequence[int], rng: np.random.Generator) -> bool:
    s, t = ([direction(rng, call.values[i]) for i in chosen] for _ in range(2))
    opposite = [np.asarray(-a).astype(a.dtype) for a in s]  # a step function is linear on each side of zero
    small = [np.asarray(a / 8).astype(a.dtype) for a in s]
    return all(_is_additive(call, chosen, *pair) for pair in ((s, t), (s, opposite), (small, t)))


def _is_additive(call: Call, chosen: Sequence[int], s: Sequence[Array], t: Sequence[Array]) -> bool:
    both = [np.asarray(2 * a + b).astype(a.dtype) for a, b in zip(s, t, strict=True)]
    of_s, of_t, of_both = (_linear_part(call, chosen, each) for each in (s, t, both))
    for a, b, c in zip(of_s, of_t, of_both, strict=True):
        right = wide(2 * wide(a) + wide(b))
        size = max(1.0, float(np.abs(right).max(initial=0.0)))
        if not np.all(np.abs(wide(c) - right) <= 100 * tolerance(c.dtype) * size):
            return False
    return True


def _check_transposed(call: Call, rule: Any, chosen: tuple[int, ...], rng: np.random.Generator) -> bool:
    """Check one set of operands; return False if the rule does not handle this set."""
    call.require_alone()
    ts = [direction(rng, call.values[i]) for i in chosen]
    moved = _linear_part(call, chosen, ts)
    cts = [direction(rng, y) for y in moved]
    args = [
        UndefPrimal(a) if i in chosen else as_array(x)
        for i, (a, x) in enumerate(zip(call.avals, call.values, strict=True))
    ]
    given: Any = [as_array(ct) for ct in cts] if call.primitive.multiple_results else as_array(cts[0])
    where = f"of operands {list(chosen)}" if len(chosen) > 1 else f"of operand {chosen[0]}"
    try:
        found = rule(given, *args, **call.params)
    except (TypeError, MissingRuleError, NotLinearError) as error:
        entry = transpose_rules.rule_of(call.primitive)
        refuses = entry is None or entry.derived is not None or isinstance(error, NotLinearError)
        undeclared = not set(chosen) <= set(call.primitive.linear_in)
        if "higher_order" in call.primitive.tags or (refuses and undeclared):
            return False  # the program is linear in these operands only by their values
        raise
    if len(found) != len(args):
        raise CheckFailure(f"the transpose rule returns {len(found)} cotangents for {len(args)} operands", "transpose")
    back = []
    for i, (ct, arg) in enumerate(zip(found, args, strict=True)):
        if not is_undef_primal(arg):
            continue
        x = call.values[i]
        ct = np.zeros_like(x) if ct is None else np.asarray(ct)
        _require_type(ct, x, i)
        back.append(ct)
    require_adjoint((cts, moved), (back, ts), (*moved, *back),
                    f"inner products <transpose(ct), t> and <ct, f(t)> {where} differ")  # fmt: skip
    if call.primitive.multiple_results and len(cts) > 1:
        _check_zero_cotangents(call, rule, args, cts)
    return True


def _require_type(ct: Array, x: Array, operand: int) -> None:
    if ct.shape != x.shape or ct.dtype != x.dtype:
        raise CheckFailure(f"the cotangent of operand {operand} is {ct.dtype.name}{list(ct.shape)}, but the operand "
                           f"is {x.dtype.name}{list(x.shape)}", "transpose", diagnose(ct, x))  # fmt: skip


def _check_zero_cotangents(call: Call, rule: Any, args: Sequence[Any], cts: Sequence[Array]) -> None:
    """Require a cotangent None to give the same as an array of zeros, for each result."""
    for k in range(len(cts)):
        both = []
        for nothing in (None, as_array(np.zeros_like(cts[k]))):
            found = rule([nothing if i == k else as_array(ct) for i, ct in enumerate(cts)], *args, **call.params)
            linear = [(ct, x) for ct, x, arg in zip(found, call.values, args, strict=True) if is_undef_primal(arg)]
            both.append([np.zeros_like(x) if ct is None else np.asarray(ct) for ct, x in linear])
        for a, b in zip(*both, strict=True):
            compare(a, b, f"a cotangent, with None as cotangent of result {k},", "transpose")


@check("vjp", "transpose", dtypes=True, shapes=True)
def check_vjp(call: Call, rng: np.random.Generator) -> None:
    """Check that vjp is the transpose of jvp."""
    needs_jvp(call)
    fun, xs, _ = call.moving()
    ts = [direction(rng, x) for x in xs]
    outs, tangents = pushed(fun, xs, ts)
    cts = [direction(rng, y) for y in outs]
    values, pullback = corejax.vjp(lambda *a: fun(*a), *xs)
    back = host(pullback(cts))
    compare_each(host(values), outs, "result", " of vjp", "jvp")
    for ct, x, i in zip(back, xs, call.inexact, strict=True):
        _require_type(ct, x, i)
    if not all(np.all(np.isfinite(wide(x))) for x in (*tangents, *back)):
        raise NotApplicable("a derivative is not finite here")
    require_adjoint((cts, tangents), (back, ts), (*xs, *outs), "inner products <vjp(ct), t> and <ct, jvp(t)> differ")
