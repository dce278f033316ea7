"""Compilation of long eager scans, in stretches between which Python handles interrupts.

Compiling takes as long as tens of thousands of NumPy operations, so that only longer scans are worth it. Whether a
scan is long depends only on its parameters, never on earlier calls: the same call returns the same bits each time.
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
from corejax.extend.types import ValueType

LONG = 1 << 14  # number of operations from which a scan is compiled
STRETCH = 1 << 24  # number of operations in one compiled stretch


def operations(jaxpr: Jaxpr) -> int:
    """Count the primitives that one run of a program evaluates: all iterations of scans, all branches of conds."""
    count: int | None = jaxpr.memo.get("operations")
    if count is None:
        count = jaxpr.memo["operations"] = sum(
            eqn.params.get("length", 1) * sum(map(_operations_of, subjaxprs(eqn.params))) + 1 for eqn in jaxpr.eqns
        )
    return count


def _operations_of(program: ClosedJaxpr | Jaxpr) -> int:
    return operations(program.jaxpr if isinstance(program, ClosedJaxpr) else program)


def may_be_compiled(program: ClosedJaxpr) -> bool:
    """Return whether an eager loop over a program may run compiled: on arrays, without effects, keys and checks."""
    if program.effects or config.disable_jit or observe.watched or checks_values():
        return False
    avals = (*program.in_avals, *program.out_avals)
    return not any(dtypes.is_extended(aval.dtype) or isinstance(aval, ValueType) for aval in avals)


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
    """Compile and run a scan if it is long and may be compiled, else return None."""
    per_step = max(1, operations(jaxpr.jaxpr))
    if length * per_step < LONG or not may_be_compiled(jaxpr):
        return None
    consts, carry, xs = split_list([Array(x) for x in args], [num_consts, num_carry])
    parts = []
    for part in _stretches(length, max(1, STRETCH // per_step), params["reverse"]):
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
    """Yield consecutive ranges of up to `size` steps, in the order in which they run."""
    count = math.ceil(length / size)
    for i in reversed(range(count)) if reverse else range(count):
        yield range(i * size, min(length, (i + 1) * size))
