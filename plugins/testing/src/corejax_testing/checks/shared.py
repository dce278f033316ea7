"""Types in functions of blocks: of primitives that say themselves along which axes their results may differ."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

import corejax
from corejax_testing.arrays import compare, direction
from corejax_testing.calls import Call, host
from corejax_testing.checks.derivatives import needs_jvp
from corejax_testing.checks.registry import check
from corejax_testing.outcomes import CheckFailure, NotApplicable

_AXIS = "devices"
_HINT = (
    "do its results vary along the manual axes that its operands vary along (aval.vma)? Types that abstract eval takes "
    "from the types of its programs, or makes of its operands' by aval.update, do"
)
_MOST = 2  # operands


@check("shared", "abstract_eval", limit=2, quick=1)
def check_shared(call: Call, rng: np.random.Generator) -> None:
    """In a function of blocks, the derivative by an operand that all devices share is the sum of theirs."""
    if call.primitive.tags.isdisjoint(("higher_order", "collective")):
        raise NotApplicable("along which axes its results may differ is found out by the kernel")
    if importlib.util.find_spec("corejax_parallel") is None:
        raise NotApplicable("corejax-parallel is not installed")
    if call.example.within is not None:
        raise NotApplicable("it is applied inside of something else")
    needs_jvp(call)
    fun, xs, _ = call.moving()
    try:
        zeros = [np.zeros_like(y) for y in host(fun(*xs))]
        corejax.make_jaxpr(lambda *a: corejax.vjp(lambda *b: fun(*b), *a)[1](zeros))(*xs)
    except Exception:
        raise NotApplicable("it is not differentiated in reverse mode") from None
    for k in range(min(len(xs), _MOST)):
        _check_operand(call, rng, k)


def _check_operand(call: Call, rng: np.random.Generator, k: int) -> None:
    fun, xs, _ = call.moving()
    kept = [i for i in range(len(call.values)) if i not in call.inexact or i == call.inexact[k]]
    elements = [xs, call.again(rng, kept).moving()[1]]
    cts = [[direction(rng, y) for y in host(fun(*x))] for x in elements]

    def slope(x: Sequence[Any], ct: Sequence[Any]) -> Any:
        return corejax.vjp(lambda *a: fun(*a), *x)[1](list(ct))[k]

    def body(shared: Any, blocks: Sequence[Any], ct: Sequence[Any]) -> Any:
        own = [y[0] for y in blocks]
        return slope([*own[:k], shared, *own[k:]], [c[0] for c in ct])

    each = [np.asarray(slope(x, ct)) for x, ct in zip(elements, cts, strict=True)]
    blocks = [np.stack(pair) for i, pair in enumerate(zip(*elements, strict=True)) if i != k]
    spec = corejax.P(_AXIS)
    mapped = corejax.shard_map(
        body,
        mesh=corejax.sharding.AbstractMesh((2,), (_AXIS,)),
        in_specs=(corejax.P(), spec, spec),
        out_specs=corejax.P(),
    )
    with corejax.disable_jit():
        got = np.asarray(mapped(xs[k], blocks, [np.stack(pair) for pair in zip(*cts, strict=True)]))
    what = f"the derivative by operand {call.inexact[k]}, which two devices share,"
    try:
        compare(got, each[0] + each[1], what, "abstract_eval", scale=8 * call.example.tolerance)
    except CheckFailure as failure:
        raise CheckFailure(str(failure), "abstract_eval", _HINT) from None
