"""Single operations that come often on small arrays, each written out as a function of `Array`s, as programs are.

Only those whose impl rule says what it is for types and params (`prepared`): a function is kept for these, and does
nothing but what NumPy does. Where it raises, or there is none, `evaluation` goes its long way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import numpy as np

from corejax.array import Array
from corejax.avals import ShapedArray
from corejax.caches import clears_cache
from corejax.ir.jaxpr import Jaxpr, JaxprEqn, Var
from corejax.primitive import Primitive
from corejax.rules import impl_rules
from corejax.seams import Slot

RUNS = 4  # runs after which an operation is written out
_LIMIT = 4096
_WORDS = (str, type(None), np.dtype, type, Enum)

# Primitives whose rule in force is prepared, and that have one result.
prepared: set[Primitive] = set()


class _Written(NamedTuple):
    """An operation written out.

    Attributes:
        function: of `Array`s of the types that it was written for; it gives one.
        numbers: the params that are numbers, and their types: 1, 1.0 and True are equal.
    """

    function: Callable[..., Array]
    numbers: tuple[tuple[str, type], ...]


# By primitive, types of operands and params: how often it was run, then what it was written as; False: it cannot be.
_operations: dict[tuple[Any, ...], _Written | int] = {}
clears_cache(_operations.clear)


_Writer = Callable[[Jaxpr, Sequence[Any], Sequence[ShapedArray], Any], "Callable[..., Any] | None"]
F = TypeVar("F", bound=_Writer)
_writer: Slot[_Writer] = Slot("what writes programs out")


def writes_programs(write: F) -> F:
    """Have programs written out by a function: `(program, known, avals, structure) -> function of arrays`, or None.

    It runs rules as `evaluation` does, which imports this module.
    """
    _writer.provide(write)
    return write


def forget() -> None:
    """Rules have changed, or somebody watches."""
    _operations.clear()


def follow(primitive: Primitive) -> None:
    """See to a primitive whose impl rule has changed."""
    forget()
    rule = impl_rules.rule_of(primitive)
    if rule is not None and "prepared" in rule.flags and not primitive.multiple_results:
        prepared.add(primitive)
    else:
        prepared.discard(primitive)


def function_of(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Callable[..., Array] | None:
    """What an operation was written out as; None where it was not."""
    for x in args:
        if type(x) is not Array:
            return None
    try:
        found = _operations.get((primitive, *[x.aval for x in args], *params.items()))
    except TypeError:  # a param that has no hash
        return None
    if type(found) is not _Written:
        return None
    for name, kind in found.numbers:
        if type(params[name]) is not kind:
            return None
    return found.function


def count(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], aval: ShapedArray) -> None:
    """Note that an operation was run, which is written out once it has been a few times.

    Args:
        primitive, params: the operation.
        avals, aval: types of its operands and its result.
    """
    key = (primitive, *avals, *params.items())
    try:
        runs = _operations.get(key, 0)
    except TypeError:  # a param that has no hash
        return
    if type(runs) is not int:
        return
    if runs + 1 < RUNS:
        if len(_operations) >= _LIMIT:
            _operations.clear()
        _operations[key] = runs + 1
    else:
        _operations[key] = _written_out(primitive, avals, params, aval) or False


def _written_out(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], aval: ShapedArray
) -> _Written | None:
    if not all(_is_word(value) or _is_number(value) for value in params.values()):
        return None
    operands, out = [Var(a) for a in avals], Var(aval)
    program = Jaxpr((), operands, [JaxprEqn(primitive, operands, [out], params)], [out])
    function = _writer.value(program, (), [aval], None) if _writer.value is not None else None
    numbers = tuple((name, type(value)) for name, value in params.items() if _is_number(value))
    return None if function is None else _Written(function, numbers)


def _is_number(value: Any) -> bool:
    """Whether a param is a number to which none of its type is equal: 0.0 and -0.0 are."""
    return type(value) in (int, bool) or (type(value) is float and value != 0)


def _is_word(value: Any) -> bool:
    """Whether nothing else is equal to a param; in tuples also integers, which say where and how many."""
    if type(value) is tuple:
        return all(type(v) is int or _is_word(v) for v in value)
    return isinstance(value, _WORDS)
