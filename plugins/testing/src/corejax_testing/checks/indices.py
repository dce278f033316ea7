"""Check integer operands: starts out of range, every branch, batches of indices only, loops without turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import jvp_rules, vmap_rules
from corejax_testing.arrays import Array, compare_each, direction, replaced
from corejax_testing.calls import Call, host, runs
from corejax_testing.checks.compiled import RULE as TRANSLATION
from corejax_testing.checks.compiled import translates
from corejax_testing.checks.derivatives import check_jvp
from corejax_testing.checks.dtypes import differentiable
from corejax_testing.checks.registry import check
from corejax_testing.checks.transposition import check_vjp
from corejax_testing.outcomes import NotApplicable
from corejax_testing.variations import in_other_index_dtypes, integer_settings


@check("indices", "impl", limit=4)
def check_indices(call: Call, rng: np.random.Generator) -> None:
    """Check starts out of range and every branch: compiled, batched by indices only, differentiated."""
    settings = [there for there in integer_settings(call) if runs(there)]
    if not settings:
        raise NotApplicable("no integer operand with other numbers")
    _check_compiled(call, settings)
    if "higher_order" not in call.primitive.tags:
        _check_other_dtypes(list(in_other_index_dtypes(call)))
    _check_batched(call, settings)
    for there in settings:
        for derivative in (check_jvp, check_vjp):
            if _has(there, derivative):
                derivative(there, rng)
    _check_batched_gradient(call, settings, rng)


def _has(call: Call, derivative: Any) -> bool:
    name = "jvp" if derivative is check_jvp else "vjp"
    if call.leaves_out(name) or jvp_rules.find(call.primitive) is None:
        return False
    try:
        differentiable(call)
    except NotApplicable:
        return False
    return True


def _compiles(call: Call) -> bool:
    return not call.leaves_out("xla") and translates(call)


def _has_vmap(call: Call) -> bool:
    return not call.leaves_out("vmap") and vmap_rules.find(call.primitive) is not None


def _check_compiled(call: Call, settings: Sequence[Call]) -> None:
    if not _compiles(call):
        return
    compiled = corejax.jit(lambda *values: call(*values))
    for there in settings:
        compare_each(host(compiled(*there.values)), host(there(*there.values)), "result",
                     f" of the compiled program, {_named(there, call)}", TRANSLATION,
                     scale=call.example.tolerance)  # fmt: skip


def _check_other_dtypes(variants: Sequence[Call]) -> None:
    """Require compiled and batched results for index operands of other dtypes to be impl's."""
    ways: list[tuple[str, str, Any]] = []
    if not variants:
        return
    if _compiles(variants[0]):
        ways.append(("compiled", TRANSLATION, lambda there, values: there(*values)))
    if _has_vmap(variants[0]):
        ways.append(("batched", "vmap", lambda there, values: corejax.vmap(there.__call__)(*values)))
    for name, rule, apply in ways:
        operands = [[x[None] if rule == "vmap" else x for x in there.values] for there in variants]

        def every(given: Any, apply: Any = apply) -> list[Any]:
            return [apply(there, xs) for there, xs in zip(variants, given, strict=True)]

        for there, outs in zip(variants, (corejax.jit(every) if rule == TRANSLATION else every)(operands), strict=True):
            types = ", ".join(a.str_short() for a in there.avals)
            numbers = [x.item() for x in there.values if x.dtype.kind in "iu" and x.ndim == 0]
            got = [x[0] if rule == "vmap" else x for x in host(outs)]
            compare_each(got, host(there(*there.values)), "result", f" of ({types}), {name}, with {numbers},", rule,
                         scale=there.example.tolerance)  # fmt: skip


def _named(there: Call, call: Call) -> str:
    """Return a phrase that names the integers which differ from the example's."""
    changed = [
        f"operand {i} = {x.ravel()[0].item()!r}"
        for i, (x, y) in enumerate(zip(there.values, call.values, strict=True))
        if x is not y and x.dtype.kind in "iu" and x.size
    ]
    return f"with {' and '.join(changed) or 'other numbers'},"


# -- batches -------------------------------------------------------------------------------------------------------


def _batches(call: Call, settings: Sequence[Call]) -> Iterator[tuple[tuple[int | None, ...], list[Array], list[Call]]]:
    """Yield batches of the integer operands only, then of all operands: axes, operands, and single applications."""
    rows = [call, *settings]
    integers = [x.dtype.kind in "iu" for x in call.values]
    for every in (False, True):
        axes = tuple(0 if every or integer else None for integer in integers)
        if every and all(integers):
            return
        values = [
            np.stack([_row(row, k, i, every) for k, row in enumerate(rows)]) if axis == 0 else call.values[i]
            for i, axis in enumerate(axes)
        ]
        apart = [
            call.at([v[k] if axis == 0 else v for v, axis in zip(values, axes, strict=True)]) for k in range(len(rows))
        ]
        yield axes, values, apart


def _row(row: Call, k: int, operand: int, every: bool) -> Array:
    x = row.values[operand]
    return x[..., ::-1] if every and k % 2 and x.ndim and x.dtype.kind not in "iub" else x


def _check_batched(call: Call, settings: Sequence[Call]) -> None:
    if not _has_vmap(call):
        return
    for axes, values, apart in _batches(call, settings):
        got = host(corejax.vmap(call.__call__, in_axes=axes)(*values))
        for k, there in enumerate(apart):
            compare_each([out[k] for out in got], host(there(*there.values)), f"element {k} of result",
                         f" with in_axes={axes}, {_named(there, call)}", "vmap",
                         scale=4 * call.example.tolerance)  # fmt: skip


def _check_batched_gradient(call: Call, settings: Sequence[Call], rng: np.random.Generator) -> None:
    """Require cotangents under vmap over the integers only to be those of the single applications."""
    if not _has_vmap(call) or not _has(call, check_vjp):
        return
    _, _, outs = call.moving()
    cts = [direction(rng, np.zeros(call.avals_out[k].shape, call.avals_out[k].dtype)) for k in outs]

    def pulled(*values: Any) -> list[Any]:
        def part(*moving: Any) -> list[Any]:
            results = call(*replaced(values, call.inexact, moving))
            return [results[k] for k in outs]

        return list(corejax.vjp(part, *(values[i] for i in call.inexact))[1](cts))

    axes, values, apart = next(_batches(call, settings))
    got = host(corejax.vmap(pulled, in_axes=axes)(*values))
    for k, there in enumerate(apart):
        compare_each([ct[k] for ct in got], host(pulled(*there.values)), "cotangent",
                     f", element {k} of a batch with in_axes={axes}, {_named(there, call)}", "vmap",
                     scale=8 * call.example.tolerance)  # fmt: skip
