"""Eager scans that are long: compiled, in stretches between which Python looks after interrupts.

Compiling takes as long as NumPy takes for some ten thousands of operations. Whether a scan is long depends on its
parameters alone: the same call gives the same bits each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ClosedJaxpr, Jaxpr, Primitive, config, dtypes, host_value, split_list
from corejax.extend.devices import checks_values
from corejax.extend.messages import observe
from corejax.extend.programs import subjaxprs
from corejax.extend.speed import engine

LONG = 1 << 14  # operations from which on a scan is compiled
STRETCH = 1 << 24  # operations that are run at once


def operations(jaxpr: Jaxpr) -> int:
    """How many primitives one run of a program evaluates, its scans all through; of branches, all of them."""
    found = jaxpr.memo.get("operations")
    if found is None:
        found = jaxpr.memo["operations"] = sum(
            eqn.params.get("length", 1) * sum(operations(program.jaxpr) for program in subjaxprs(eqn.params)) + 1
            for eqn in jaxpr.eqns
        )
    return found  # type: ignore[no-any-return]


def may_be_compiled(program: ClosedJaxpr) -> bool:
    """Return whether an eager loop over a program may run compiled: not with effects or keys, nor under checks."""
    if program.effects or config.disable_jit or observe.watched or checks_values():
        return False
    return not any(dtypes.is_extended(aval.dtype) for aval in (*program.in_avals, *program.out_avals))


def run_long_scan(
    scan_p: Primitive,
    args: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> list[Any] | None:
    """Results of a scan, if it is long and is compiled: not while somebody looks at values, nor with effects."""
    each = max(1, operations(jaxpr.jaxpr))
    if length * each < LONG or not may_be_compiled(jaxpr):
        return None
    consts, carry, xs = split_list([Array(x) for x in args], [num_consts, num_carry])
    parts = []
    for part in _stretches(length, max(1, STRETCH // each), params["reverse"]):
        operands = [
            *consts,
            *carry,
            *(x if len(part) == length else Array(host_value(x)[part.start : part.stop]) for x in xs),
        ]
        stretch = {**params, "jaxpr": jaxpr, "length": len(part), "num_carry": num_carry, "num_consts": num_consts}
        outs = engine().run_compiled(scan_p, operands, stretch)
        if outs is None:
            return None
        carry = outs[:num_carry]
        parts.append(outs[num_carry:])
    if params["reverse"]:
        parts.reverse()
    ys = [np.concatenate(y) if len(y) > 1 else y[0] for y in ([*map(host_value, y)] for y in zip(*parts, strict=True))]
    return [*map(host_value, carry), *ys]


def _stretches(length: int, size: int, reverse: bool) -> Iterator[range]:
    """Consecutive ranges of up to `size` steps, in the order in which they are run."""
    count = math.ceil(length / size)
    for i in reversed(range(count)) if reverse else range(count):
        yield range(i * size, min(length, (i + 1) * size))
