"""The engine's cache of single operations: what an operation on given types comes down to.

An entry is found by the primitive, the types of its operands and its params. It is a `Ufunc`, if the impl rule is one;
a `Specialised` function that was generated after the operation had run a few times; the number of its runs until then;
or False, if nothing does it in fewer steps than evaluation. An entry never computes other bits than the impl rule: what
it skips is looking up the rule and checking types, which are known from the key.
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
        call: of NumPy arrays of the types that it was made for; returns an array.
        aval: type of the result.
    """

    call: Callable[..., Any]
    aval: ShapedArray


class Specialised(NamedTuple):
    """A generated function.

    Attributes:
        function: of `Array`s of the types that it was made for; returns one.
        numbers: the params that are numbers, and their types: 1, 1.0 and True are equal.
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
        found = operations.get((primitive, *[x.aval for x in args], *params.items()))
    except TypeError:  # a param that has no hash
        return None
    if type(found) is not Specialised:
        return None
    for name, kind in found.numbers:
        if type(params[name]) is not kind:
            return None
    return found.function


def note_run(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], aval: ShapedArray) -> Any:
    """Note that an operation runs, for calls of the same types; return its entry, if it has one.

    Args:
        primitive, params: the operation.
        avals, aval: types of its operands and its result.
    """
    if params and large.flags_of(primitive).prepare is None:
        return None
    if not all(_is_word(v) or _is_number(v) for v in params.values()):
        return None  # keys keep neither functions nor what else a param may be
    key = (primitive, *avals, *params.items())
    found = operations.get(key, 0)
    if type(found) is int:
        found = operations.store(key, _entry(primitive, avals, params, aval, found + 1))
    return found


def _entry(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], aval: ShapedArray, runs: int
) -> Ufunc | Specialised | int:
    """Return the entry of an operation that runs for the time of this number."""
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
    """Return the ufunc that the impl rule is for operands of these types.

    A large result is in memory that compiled programs can share. None if the rule is no ufunc or leaves the operation
    to the compiler, or if the result's size has to be checked.
    """
    ufunc = as_ufunc(prepared_rule(primitive, avals, {}) or evaluation.host_rule(primitive), avals, [aval])
    if ufunc is None or aval.nbytes > LARGE or large.is_compiled(primitive, avals, [aval], {}):
        return None
    if aval.size >= large.SIZE:
        return Ufunc(lambda *values: ufunc(*values, out=aligned_empty(aval.shape, aval.dtype)), aval)
    return Ufunc(ufunc if aval.shape else lambda *values: np.asarray(ufunc(*values)), aval)


def _is_number(value: Any) -> bool:
    """Tell whether a param is a number to which none of its type is equal: 0.0 and -0.0 are."""
    return type(value) in (int, bool) or (type(value) is float and value != 0)


def _is_word(value: Any) -> bool:
    """Tell whether nothing else is equal to a param; tuples may hold integers, too, which say where and how many."""
    if type(value) is tuple:
        return all(type(v) is int or _is_word(v) for v in value)
    return isinstance(value, _WORDS)
