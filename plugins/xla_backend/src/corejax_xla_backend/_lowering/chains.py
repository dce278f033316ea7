"""Chains of elementwise operations, which XLA on CPUs computes once if the value at their end is stored.

XLA fuses elementwise operations into the loops that read their results. A value that several loops read is computed in
each of them, with all elementwise operations before it. In the gradient of a residual stream every value is read twice:
by the gradient of its layer and by the next sum. The loop for layer n then computes the sums of all n layers before it,
so that XLA compiles and runs n layers in a time proportional to n². Lowering therefore stores such values at the end of
long chains, and all values at the end of very long ones; `Value.chain` is the length of the chain that ends in a value.
Scalars are not stored, because functions that combine elements, whose values are scalars, cannot contain calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, Primitive
from corejax_xla_backend._lowering.types import Value

# The most operations that are computed repeatedly. The gradient of sixty layers compiles in 0.23 of the time with 16,
# in 0.38 with 32 and in 0.57 with 64. But with 16, programs of 20 to 60 cheap operations (products of quaternions, say)
# run up to twice as long as without a limit, because to store a value and to read it takes longer than to compute it.
LONGEST_CHAIN = 32
# The most operations in one loop. XLA recurses along them, and takes a time of n² for n operations: 90 s for 10,000.
# 50,000 end the process; with any limit from 64 to 256, they compile in 8 s.
LONGEST_LOOP = 256
# Operations besides the elementwise ones that XLA fuses into the loops that read their results.
_FUSED = frozenset(
    {"broadcast_in_dim", "concatenate", "expand_dims", "pad", "reshape", "rev", "select_n", "slice", "squeeze"}
    | {"transpose"}
)


def links(primitive: Primitive) -> int | None:
    """Return how many operations a primitive adds to a chain; None if XLA does not fuse it."""
    if "elementwise" in primitive.tags and not primitive.multiple_results:
        return 1
    return 0 if primitive.name in _FUSED else None


def longest_chain(values: Iterable[Value]) -> int:
    """Return the length of the longest chain that ends in one of several values."""
    longest = 0
    for x in values:
        if x.chain > longest:
            longest = x.chain
    return longest


def read_repeatedly(jaxpr: Jaxpr, known: dict[Jaxpr, frozenset[Any]]) -> frozenset[Any]:
    """Return the arrays in a program that several loops read; `known` has those of other programs.

    Each variable gets the loop that all of its uses are fused into; this is the variable itself if there are several,
    so that the operations before it have one loop again. Calls are read as if they were inlined, as XLA does.
    """
    if jaxpr in known:
        return known[jaxpr]
    loops: dict[Any, Any] = {v: v for v in jaxpr.outvars}
    repeated: set[Any] = set()
    is_fused: dict[Primitive, bool] = {}
    for eqn in reversed(jaxpr.eqns):
        primitive = eqn.primitive
        if primitive not in is_fused:
            is_fused[primitive] = links(primitive) is not None
        loop = loops.get(eqn.outvars[0]) if is_fused[primitive] else eqn
        if loop is None:  # nothing reads the result, so that XLA drops the operation
            continue
        for v in eqn.invars:
            if loops.setdefault(v, loop) is not loop:
                loops[v] = v
                repeated.add(v)
        called = eqn.params.get("call_jaxpr")
        if isinstance(called, ClosedJaxpr):
            inside = read_repeatedly(called.jaxpr, known)
            # The arguments of a plugin's primitive may be no arguments of the program.
            again = [v for v, argument in zip(eqn.invars, called.jaxpr.invars, strict=False) if argument in inside]
            repeated.update(again)
            loops.update(zip(again, again, strict=True))
    found = known[jaxpr] = frozenset(v for v in repeated if v.aval.shape)
    return found
