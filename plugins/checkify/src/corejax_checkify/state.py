"""The error that a program carries: a predicate, a code and payloads.

The predicate is true if a check failed. The code is the position of the failure in the static list of possible failures
(`ErrorType`). Payloads are arrays for its message. Failures with payloads of the same types share one payload, as only
the first failure is reported. So the number of arrays does not grow with the number of checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import Array, ShapedArray, Tracer, dtypes, get_aval, host_value
from corejax_checkify.failures import BatchedError, CheckedError, Failure
from corejax_lax_basic import lax

Types = tuple[ShapedArray, ...]  # the types of one payload

_BOOL, _INT32 = ShapedArray((), np.dtype(np.bool_)), ShapedArray((), np.dtype(np.int32))


class ErrorType:
    """The static part of an error; hashable.

    Attributes:
        failures: the possible failures, each with the types of its payload. Codes are positions in this list.
        payloads: the types of each payload.
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
        """The name in printed programs."""
        kinds = sorted(kind.__name__ for kind in self.kinds)
        return f"{len(self.failures)} x {' or '.join(kinds)}"

    def __repr__(self) -> str:
        return f"ErrorType({self.__name__})"

    def __reduce__(self) -> Any:
        return ErrorType, (self.failures, self.payloads)

    def avals(self) -> list[ShapedArray]:
        """Return the types of an error's leaves: predicate, code, payloads. An error without failures has no leaves."""
        if not self.failures:
            return []
        return [_BOOL, _INT32, *(aval for types in self.payloads for aval in types)]

    @property
    def kinds(self) -> set[type[CheckedError]]:
        """The kinds of the possible failures."""
        return {failure.kind for failure, _ in self.failures}

    def joined(self, other: ErrorType) -> ErrorType:
        """Return the type of the join of two errors; codes of `other` are shifted by the number of failures of this."""
        payloads = dict.fromkeys((*self.payloads, *other.payloads))
        return ErrorType((*self.failures, *other.failures), payloads)


class State(NamedTuple):
    """An error's arrays, with payloads by their types. The code is valid only if the predicate is true."""

    pred: Any
    code: Any
    payloads: Mapping[Types, Sequence[Any]]

    def leaves(self, payloads: Iterable[Types]) -> list[Any]:
        """Return the arrays as a list, in the order of `ErrorType.avals`; missing payloads are zeros."""
        arrays = [self.payloads[types] if types in self.payloads else map(zeros, types) for types in payloads]
        return [self.pred, self.code, *(x for leaves in arrays for x in leaves)]

    def or_else(self, later: State) -> State:
        """Return this error if it has occurred, else the later one."""
        merged = dict(self.payloads)
        for types, leaves in later.payloads.items():
            earlier = self.payloads.get(types)
            merged[types] = leaves if earlier is None else _selected(self.pred, earlier, leaves)
        return State(lax.bitwise_or(self.pred, later.pred), lax.select(self.pred, self.code, later.code), merged)

    def shifted(self, count: int) -> State:
        """Add `count` to the code."""
        if not count:
            return self
        known = type(self.code) is Array
        code = constant(int(self.code) + count, np.int32) if known else lax.add(self.code, constant(count, np.int32))
        return self._replace(code=code)


def _selected(pred: Any, this: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [lax.select(pred, x, y) for x, y in zip(this, other, strict=True)]


def as_state(error_type: ErrorType, leaves: Sequence[Any]) -> State:
    """Return the state for a list of an error's leaves."""
    pred, code, *rest = leaves
    arrays = iter(rest)
    return State(pred, code, {types: [next(arrays) for _ in types] for types in error_type.payloads})


def unfailed(error_type: ErrorType) -> list[Any]:
    """Return the leaves of an error that has not occurred."""
    return [zeros(aval) for aval in error_type.avals()]


def constant(value: Any, dtype: Any) -> Array:
    """Return a scalar array of a dtype."""
    aval = ShapedArray((), np.dtype(dtype))
    return Array(np.asarray(value, aval.dtype), aval)


def zeros(aval: ShapedArray) -> Any:
    """Return zeros of a type."""
    scalar = constant(0, aval.dtype)
    return lax.broadcast(scalar, aval.shape) if aval.shape else scalar


def exception_of(error_type: ErrorType, leaves: Sequence[Any]) -> CheckedError | None:
    """Return the exception of an error, or None if it has not occurred.

    Args:
        error_type: type of the error.
        leaves: arrays of the error, which may have leading batch axes.

    Raises:
        TypeError: if the arrays are traced.
    """
    if not leaves:
        return None
    pred, code, *rest = map(_known, leaves)
    exceptions = {}
    for at in map(tuple, np.argwhere(pred).tolist()):
        failure, types = error_type.failures[int(code[at])]
        payloads = as_state(error_type, [True, 0, *(x[at] for x in rest)]).payloads
        exceptions[at] = failure.exception(payloads.get(types, ()))
    if pred.shape == ():
        return exceptions.get(())
    return BatchedError(exceptions) if exceptions else None


def _known(x: Any) -> np.ndarray[Any, Any]:
    value = x.steering() if isinstance(x, Tracer) else x
    if value is None:
        raise TypeError(
            "the value of a traced Error is not known: return it from the jitted (vmapped, scanned) function and read "
            "it there, or pass it to checkify.check_error inside a function that is checkified"
        )
    return np.asarray(host_value(value))


def without_derivative(x: Any) -> Any:
    """Stop the gradient of a payload, so that loops need not carry its tangent."""
    return lax.stop_gradient(x) if dtypes.is_inexact(get_aval(x).dtype) else x


def typed(payload: Sequence[Any]) -> Types:
    """Return the types of a payload, without weak types."""
    return tuple(get_aval(x).strip_weak_type() for x in payload)
