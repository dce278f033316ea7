"""Chains of elementwise operations, which XLA on CPUs computes once if the value at their end is stored.

XLA fuses elementwise operations into the loops that read their results. A value that several loops read is computed in
each of them, with all elementwise operations before it. In the gradient of a residual stream every value is read twice:
by the gradient of its layer and by the next sum. The loop for layer n then computes the sums of all n layers before it,
so that XLA compiles and runs n layers in a time proportional to n². Lowering therefore stores values at the end of long
chains that several loops compute, and all values at the end of very long ones; `Value.chain` is the length of the chain
that ends in a value. Scalars are not stored, because functions that combine elements, whose values are scalars, cannot
contain calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from corejax.extend import ClosedJaxpr, Jaxpr, Primitive
from corejax_xla_backend._lowering.types import Value

# The most operations that are computed repeatedly. The gradient of sixty layers compiles in 0.24 of the time with 16,
# and in 0.33 with 32. But with 16, programs of 20 to 60 cheap operations (products of quaternions, say) run up to twice
# as long as without a limit, because to store a value and to read it takes longer than to compute it.
LONGEST_CHAIN = 32
# The most loops that compute a value repeatedly. With one, a program of two results, such as a Hessian-vector product
# of 30 to 60 operations, runs up to 1.5 times as long as without a limit; with three, unrolled steps of an integrator
# with three results gain nothing, and with two they run in 0.45 of the time.
LOOPS = 2
# The most operations in one loop. XLA recurses along them, and takes a time of n² for n operations: 90 s for 10,000.
# 50,000 end the process; with any limit from 64 to 256, they compile in 8 s.
LONGEST_LOOP = 256
# Operations besides the elementwise ones that XLA fuses into the loops that read their results.
_FUSED = frozenset([
    "broadcast_in_dim", "concatenate", "expand_dims", "pad", "reshape", "rev", "select_n", "slice", "squeeze",
    "transpose",
])  # fmt: skip
_NO_LOOPS: frozenset[Any] = frozenset()


class Reads(NamedTuple):
    """What reads the values of a program.

    Attributes:
        repeated: the arrays that more than `LOOPS` loops compute.
        arguments: the loops that compute each argument; a result of the program is its index.
    """

    repeated: frozenset[Any]
    arguments: list[frozenset[Any]]


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


def read_repeatedly(jaxpr: Jaxpr, known: dict[Jaxpr, Reads]) -> Reads:
    """Return the arrays in a program that several loops compute; `known` has those of other programs.

    Each variable gets the loops that compute it: those that its uses are fused into. A variable with more than `LOOPS`
    counts as one loop for the operations before it. Calls are read as if they were inlined, as XLA does.
    """
    if jaxpr in known:
        return known[jaxpr]
    loops: dict[Any, frozenset[Any]] = {}
    repeated: dict[Any, frozenset[Any]] = {}
    is_fused: dict[Primitive, bool] = {}

    def read(v: Any, more: frozenset[Any]) -> None:
        before = loops.setdefault(v, more)
        if before is more or v in repeated:
            return
        loops[v] = before | more
        if len(loops[v]) > LOOPS:
            repeated[v], loops[v] = loops[v], frozenset([v])

    for i, v in enumerate(jaxpr.outvars):
        read(v, frozenset([i]))
    for eqn in reversed(jaxpr.eqns):
        primitive = eqn.primitive
        if primitive not in is_fused:
            is_fused[primitive] = links(primitive) is not None
        called = eqn.params.get("call_jaxpr")
        if isinstance(called, ClosedJaxpr) and len(called.jaxpr.invars) == len(eqn.invars):
            for v, within in zip(eqn.invars, read_repeatedly(called.jaxpr, known).arguments, strict=True):
                for x in within:
                    read(v, loops.get(eqn.outvars[x], _NO_LOOPS) if type(x) is int else frozenset([(eqn, x)]))
        elif more := loops.get(eqn.outvars[0]) if is_fused[primitive] else frozenset([eqn]):
            for v in eqn.invars:  # unless nothing reads the result, so that XLA drops the operation
                if loops.setdefault(v, more) is not more:
                    read(v, more)
    arguments = [repeated.get(v) or loops.get(v, _NO_LOOPS) for v in jaxpr.invars]
    found = known[jaxpr] = Reads(frozenset(v for v in repeated if v.aval.shape), arguments)
    return found
