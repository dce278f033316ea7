"""What is carried through a program to say whether it failed, where and with which values.

A predicate, a code and payloads. The code is the position of a failure in the list of all that may fail; payloads are
arrays for its message. Failures whose payloads are of the same types share the arrays: of several that happen, only
the first one is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Array, ShapedArray, Tracer, dtypes, get_aval, host_value
from corejax_checkify.failures import BatchedError, CheckedError, Failure
from corejax_lax_basic import lax

Types = tuple[ShapedArray, ...]  # of one payload

_BOOL, _INT32 = ShapedArray((), np.dtype(np.bool_)), ShapedArray((), np.dtype(np.int32))


class ErrorType:
    """What is known of an error while tracing; hashable.

    Attributes:
        failures: all that may fail, each with the types of its payload. A code is a position in it.
        payloads: the payloads that there are, by their types.
    """

    __slots__ = ("failures", "payloads")

    def __init__(self, failures: Iterable[tuple[Failure, Types]] = (), payloads: Iterable[Types] = ()) -> None:
        self.failures = tuple(failures)
        self.payloads = tuple(payloads)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ErrorType) and (self.failures, self.payloads) == (other.failures, other.payloads)

    def __hash__(self) -> int:
        return hash((len(self.failures), self.payloads))

    @property
    def __name__(self) -> str:
        """What stands for it in a printed program."""
        kinds = sorted(kind.__name__ for kind in self.kinds)
        return f"{len(self.failures)} x {' or '.join(kinds)}"

    def __repr__(self) -> str:
        return f"ErrorType({self.__name__})"

    def __reduce__(self) -> Any:
        return ErrorType, (self.failures, self.payloads)

    def avals(self) -> list[ShapedArray]:
        """Types of an error's leaves: predicate, code, payloads. Of one that cannot fail there are none."""
        if not self.failures:
            return []
        return [_BOOL, _INT32, *(aval for types in self.payloads for aval in types)]

    @property
    def kinds(self) -> set[type[CheckedError]]:
        """What it can be."""
        return {failure.kind for failure, _ in self.failures}

    def joined(self, other: ErrorType) -> ErrorType:
        """The type of either of two errors; codes of the other one begin where those of this one end."""
        payloads = dict.fromkeys((*self.payloads, *other.payloads))
        return ErrorType((*self.failures, *other.failures), payloads)


class State(NamedTuple):
    """An error's arrays: `payloads` by their types. The code counts where the predicate holds."""

    pred: Any
    code: Any
    payloads: Mapping[Types, Sequence[Any]]

    def leaves(self, payloads: Iterable[Types]) -> list[Any]:
        """As a list, as `ErrorType.avals` has the types; zeros for payloads that there are not."""
        found = [self.payloads[types] if types in self.payloads else map(zeros, types) for types in payloads]
        return [self.pred, self.code, *(x for leaves in found for x in leaves)]

    def or_else(self, later: State) -> State:
        """This error where it has happened, the later one else."""
        merged = dict(self.payloads)
        for types, leaves in later.payloads.items():
            earlier = self.payloads.get(types)
            merged[types] = leaves if earlier is None else _selected(self.pred, earlier, leaves)
        return State(lax.bitwise_or(self.pred, later.pred), lax.select(self.pred, self.code, later.code), merged)

    def shifted(self, count: int) -> State:
        """The same with other codes, which count from `count`."""
        if not count:
            return self
        known = type(self.code) is Array
        code = constant(int(self.code) + count, np.int32) if known else lax.add(self.code, constant(count, np.int32))
        return self._replace(code=code)


def _selected(pred: Any, this: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [lax.select(pred, x, y) for x, y in zip(this, other, strict=True)]


def as_state(error_type: ErrorType, leaves: Sequence[Any]) -> State:
    """From a list of an error's leaves."""
    pred, code, *rest = leaves
    arrays = iter(rest)
    return State(pred, code, {types: [next(arrays) for _ in types] for types in error_type.payloads})


def unfailed(error_type: ErrorType) -> list[Any]:
    """Leaves of an error that has not happened."""
    return [zeros(aval) for aval in error_type.avals()]


def constant(value: Any, dtype: Any) -> Array:
    """A scalar of a dtype."""
    aval = ShapedArray((), np.dtype(dtype))
    return Array(np.asarray(value, aval.dtype), aval)


def zeros(aval: ShapedArray) -> Any:
    """Zeros of a type."""
    scalar = constant(0, aval.dtype)
    return lax.broadcast(scalar, aval.shape) if aval.shape else scalar


def exception_of(error_type: ErrorType, leaves: Sequence[Any]) -> CheckedError | None:
    """The exception that an error stands for; None where nothing has failed.

    Args:
        error_type: its type.
        leaves: arrays, which may have axes of batches before their own.

    Raises:
        TypeError: the arrays are traced.
    """
    if not leaves:
        return None
    pred, code, *rest = map(_known, leaves)
    found = {}
    for at in map(tuple, np.argwhere(pred).tolist()):
        failure, types = error_type.failures[int(code[at])]
        payloads = as_state(error_type, [True, 0, *(x[at] for x in rest)]).payloads
        found[at] = failure.exception(payloads.get(types, ()))
    if pred.shape == ():
        return found.get(())
    return BatchedError(found) if found else None


def _known(x: Any) -> np.ndarray[Any, Any]:
    value = x.steering() if isinstance(x, Tracer) else x
    if value is None:
        raise TypeError(
            "an Error of a program that is being traced says nothing yet: return it from the jitted (vmapped, scanned) "
            "function and ask it there, or pass it to checkify.check_error inside a function that is checkified"
        )
    return np.asarray(host_value(value))


def without_derivative(x: Any) -> Any:
    """The value, of which an error has no derivative: loops need not carry its tangent."""
    return lax.stop_gradient(x) if dtypes.is_inexact(get_aval(x).dtype) else x


def typed(payload: Sequence[Any]) -> Types:
    """Types of a payload; weak types count as others do."""
    return tuple(get_aval(x).strip_weak_type() for x in payload)
