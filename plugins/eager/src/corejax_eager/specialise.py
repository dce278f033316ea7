"""The engine's cache of single operations, specialised to the types of their operands.

The key of an entry is the primitive, the types of its operands, its params and their types. The entry is a `Ufunc` if
the impl rule is one; otherwise the number of runs, and after a few of them a generated function of `Array`s, or False
if the operation has to be evaluated. An entry computes the same bits as the impl rule. It only skips the lookup of the
rule and the checks of types, which the key implies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from corejax.extend import Array, Jaxpr, JaxprEqn, Primitive, ShapedArray, Var, tree
from corejax.extend.devices import aligned_empty
from corejax.extend.speed import LARGE, evaluation
from corejax_eager import large
from corejax_eager.cache import Cache, is_word
from corejax_eager.codegen import RUNS, as_ufunc, generate_on_arrays, prepared_rule


@dataclass(frozen=True, slots=True)
class Ufunc:
    """An operation without params that is one ufunc.

    Attributes:
        call: function of NumPy arrays of the key's types; returns an array.
        aval: type of the result.
    """

    call: Callable[..., Any]
    aval: ShapedArray


operations = Cache()


def specialised(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Callable[..., Array] | None:
    """Return the function that was generated for an operation, or None."""
    for x in args:
        if type(x) is not Array:
            return None
    try:
        entry = operations.get((primitive, *[x.aval for x in args], *params.items(), *map(type, params.values())))
    except TypeError:  # a param has no hash
        return None
    return entry if type(entry) is FunctionType else None


def note_run(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], aval: ShapedArray) -> Any:
    """Count a run of an operation, and return its entry in the cache, or None if it cannot be cached.

    Args:
        primitive: the primitive.
        avals: types of its operands.
        params: its params.
        aval: type of its result.
    """
    # A key must not keep functions and other objects alive. An operation without operands may not be pure.
    if not avals or not all(map(is_word, params.values())) or any(type(a) is not ShapedArray for a in (*avals, aval)):
        return None
    key = (primitive, *avals, *params.items(), *map(type, params.values()))
    entry = operations.get(key, 0)
    if type(entry) is int:
        entry = operations.store(key, _entry(primitive, avals, params, aval, entry + 1))
    return entry


def _entry(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], aval: ShapedArray, runs: int
) -> Ufunc | Callable[..., Array] | int:
    """Return the cache entry of an operation at its run number `runs`."""
    ufunc = None if params else _ufunc(primitive, avals, aval)
    if ufunc is not None or runs < RUNS:
        return ufunc or runs
    operands, out = [Var(a) for a in avals], Var(aval)
    program = Jaxpr((), operands, [JaxprEqn(primitive, operands, [out], params)], [out])
    return generate_on_arrays(program, (), [aval], tree.structure(0)) or False


def _ufunc(primitive: Primitive, avals: Sequence[ShapedArray], aval: ShapedArray) -> Ufunc | None:
    """Return the ufunc that computes what the impl rule does for operands of these types.

    Large results are allocated in memory that compiled programs can share. The result is None if the rule is not a
    ufunc or wants the operation compiled, or if evaluation has to check the result's size.
    """
    ufunc = as_ufunc(prepared_rule(primitive, avals, {}) or evaluation.host_rule(primitive), avals, [aval])
    if ufunc is None or aval.nbytes > LARGE or large.is_compiled(primitive, avals, [aval], {}):
        return None
    if aval.size >= large.SIZE:
        return Ufunc(lambda *values: ufunc(*values, out=aligned_empty(aval.shape, aval.dtype)), aval)
    return Ufunc(ufunc if aval.shape else lambda *values: np.asarray(ufunc(*values)), aval)
