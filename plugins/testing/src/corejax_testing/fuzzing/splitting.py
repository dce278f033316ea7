"""The relation `transpose`, and the choices of unknown operands for the relation `split`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from corejax.extend import JaxprEqn, UndefPrimal, Var, transpose_rules
from corejax_testing.arrays import Array, direction, has_tangents, tolerance, wide
from corejax_testing.calls import host
from corejax_testing.contributions import examples_of
from corejax_testing.finite import inner, magnitude
from corejax_testing.fuzzing.case import Case, values_of
from corejax_testing.outcomes import CheckFailure, NotApplicable

_MASKS = 2


def masks(case: Case) -> Iterator[list[bool]]:
    """Yield choices of unknown operands: all choices for few operands, some for many."""
    count = len(case.values)
    if count <= 2:
        every = list(itertools.product((False, True), repeat=count))
    else:
        rng = case.rng(5)
        every = [tuple(bool(b) for b in rng.integers(0, 2, count)) for _ in range(_MASKS)]
    return (list(mask) for mask in every if any(mask) and not (all(mask) and count > 1))


def transposed(case: Case) -> None:
    """Check the transpose rules of equations that are linear in an operand, at the program's own values.

    Raises:
        CheckFailure: <ct, f(t)> and <transpose(ct), t> differ.
        NotApplicable: no equation has such an operand.
    """
    values, asked = values_of(case), False
    for eqn in case.program.eqns:
        rule = transpose_rules.find(eqn.primitive)
        if rule is None or not all(has_tangents(v.aval.dtype) for v in eqn.outvars):
            continue
        if any("transpose" in example.skip for example in examples_of(eqn.primitive.name)):
            continue  # the rule is not the exact transpose, by definition
        operands = [values[v] if isinstance(v, Var) else np.asarray(v.val, v.aval.dtype) for v in eqn.invars]
        for i in eqn.primitive.linear_in or ():
            if i < len(operands) and has_tangents(operands[i].dtype):
                _transposed(case, eqn, rule, operands, i)
                asked = True
    if not asked:
        raise NotApplicable("no equation is linear in an operand")


def _transposed(case: Case, eqn: JaxprEqn, rule: Any, operands: list[Array], i: int) -> None:
    """Check the transpose of one equation in one operand, by inner products; its value at zero is subtracted."""
    rng = case.rng(6, i)
    t = direction(rng, operands[i])

    def at(x: Array) -> list[Array]:
        out = eqn.primitive.bind(*operands[:i], x, *operands[i + 1 :], **eqn.params)
        return host(out if eqn.primitive.multiple_results else [out])

    with np.errstate(all="ignore"):
        there = at(np.zeros_like(t))
        moved = [np.asarray(a - b) for a, b in zip(at(t), there, strict=True)]
    cts = [direction(rng, y) for y in moved]
    args = [UndefPrimal(v.aval) if k == i else x for k, (v, x) in enumerate(zip(eqn.invars, operands, strict=True))]
    given: Any = cts if eqn.primitive.multiple_results else cts[0]
    found = rule(given, *args, **eqn.params)
    if len(found) != len(args):
        raise CheckFailure(
            f"transpose of {eqn.primitive.name} returns {len(found)} cotangents for {len(args)} operands"
        )
    ct = np.zeros_like(t) if found[i] is None else np.asarray(found[i])
    if (ct.shape, ct.dtype) != (t.shape, t.dtype):
        raise CheckFailure(
            f"transpose of {eqn.primitive.name} returns {ct.dtype.name}{list(ct.shape)} for operand {i}, which is "
            f"{t.dtype.name}{list(t.shape)}"
        )
    left, right = inner(cts, moved), inner([ct], [t])
    size = magnitude(cts, moved) + magnitude([ct], [t])
    size += sum(float(np.abs(wide(x)).sum()) for x in (*moved, *there))  # rounding errors are proportional to these
    allowed = 10 * tolerance(max((x.dtype for x in (*moved, ct)), key=tolerance)) * max(size, 1.0)
    if not abs(left - right) <= allowed and np.isfinite(left):
        raise CheckFailure(f"transpose of {eqn.primitive.name} in operand {i}: <ct, f(t)> is {left!r}, "
                           f"<transpose(ct), t> is {right!r}; they may differ by {allowed:.1e}")  # fmt: skip
