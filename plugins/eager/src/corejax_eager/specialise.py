"""The engine's cache of single operations, specialised to the types of their operands.

The key of an entry is the primitive, the types of its operands and its params. The entry is a `Ufunc` if the impl rule
is one; a `Specialised` function, which is generated after a few runs; before that, the number of runs; or False if no
specialisation is faster than evaluation. An entry computes the same bits as the impl rule. It only skips the lookup of
the rule and the checks of types, which the key implies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Array, Jaxpr, JaxprEqn, Primitive, ShapedArray, Var
from corejax.extend.devices import aligned_empty
from corejax.extend.speed import LARGE, evaluation
from corejax_eager import large
from corejax_eager.cache import Cache
from corejax_eager.codegen import RUNS, as_ufunc, generate_on_arrays, prepared_rule

_WORDS = (str, type(None), np.dtype, type, Enum)


class Ufunc(NamedTuple):
    """An operation without params that is one ufunc.

    Attributes:
        call: function of NumPy arrays of the key's types; returns an array.
        aval: type of the result.
    """

    call: Callable[..., Any]
    aval: ShapedArray


class Specialised(NamedTuple):
    """A generated function.

    Attributes:
        function: function of `Array`s of the key's types; returns an `Array`.
        numbers: names and types of the params that are numbers, because 1, 1.0 and True are equal as keys.
    """

    function: Callable[..., Array]
    numbers: tuple[tuple[str, type], ...]


operations = Cache()


def specialised(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Callable[..., Array] | None:
    """Return the function that was generated for an operation, or None."""
    for x in args:
        if type(x) is not Array:
            return None
    try:
        entry = operations.get((primitive, *[x.aval for x in args], *params.items()))
    except TypeError:  # a param has no hash
        return None
    if type(entry) is not Specialised:
        return None
    for name, kind in entry.numbers:
        if type(params[name]) is not kind:
            return None
    return entry.function


def note_run(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], aval: ShapedArray) -> Any:
    """Count a run of an operation, and return its entry in the cache, or None if it cannot be cached.

    Args:
        primitive: the primitive.
        avals: types of its operands.
        params: its params.
        aval: type of its result.
    """
    if params and large.flags_of(primitive).prepare is None:
        return None
    if not all(_is_word(v) or _is_number(v) for v in params.values()):
        return None  # a key must not keep functions and other objects alive
    key = (primitive, *avals, *params.items())
    entry = operations.get(key, 0)
    if type(entry) is int:
        entry = operations.store(key, _entry(primitive, avals, params, aval, entry + 1))
    return entry


def _entry(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], aval: ShapedArray, runs: int
) -> Ufunc | Specialised | int:
    """Return the cache entry of an operation at its run number `runs`."""
    ufunc = None if params else _ufunc(primitive, avals, aval)
    if ufunc is not None or large.flags_of(primitive).prepare is None:
        return ufunc or False
    if runs < RUNS:
        return runs
    operands, out = [Var(a) for a in avals], Var(aval)
    program = Jaxpr((), operands, [JaxprEqn(primitive, operands, [out], params)], [out])
    function = generate_on_arrays(program, (), [aval], None)
    numbers = tuple((name, type(value)) for name, value in params.items() if _is_number(value))
    return function is not None and Specialised(function, numbers)


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


def _is_number(value: Any) -> bool:
    """Return whether a param is a number that equals no other number of its type; 0.0 equals -0.0."""
    return type(value) in (int, bool) or (type(value) is float and value != 0)


def _is_word(value: Any) -> bool:
    """Return whether a param equals only itself; tuples may also hold integers, such as axes and sizes."""
    if type(value) is tuple:
        return all(type(v) is int or _is_word(v) for v in value)
    return isinstance(value, _WORDS)
