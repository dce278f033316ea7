"""`Error`, the result of checked functions, and `check_error`, which raises it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Tracer, bottom_trace, current_trace, get_aval, tree
from corejax.extend.transforms import batch_flat
from corejax_checkify.check_primitive import check_p, raise_if_failed
from corejax_checkify.failures import CheckedError
from corejax_checkify.state import ErrorType, exception_of


class Error:
    """The first failure of a program, if any, which a function transformed by `checkify` returns beside its result.

    An error is a pytree of arrays, so that it passes through `jit`, `vmap` and `scan`, and through `grad` with
    `has_aux=True`.
    """

    __slots__ = ("_leaves", "_type")

    def __init__(self, error_type: ErrorType, leaves: Sequence[Any]) -> None:
        self._type = error_type
        self._leaves = tuple(leaves)

    def get(self) -> str | None:
        """Return the message of the failure with the user's line, or None if nothing failed.

        The message of a batch (the error of `vmap(checkify(f))`) has a line for each element that failed.

        Raises:
            TypeError: if the error is traced, as the program has not run yet.
        """
        exception = self.get_exception()
        return None if exception is None else str(exception)

    def get_exception(self) -> CheckedError | None:
        """Return the failure as an exception of its kind, or None if nothing failed.

        Raises:
            TypeError: if the error is traced, as the program has not run yet.
        """
        return exception_of(self._type, self._leaves)

    def throw(self) -> None:
        """Raise an exception if something failed; see `check_error`."""
        check_error(self)

    def __repr__(self) -> str:
        known = all(isinstance(x, Array | np.ndarray) and not isinstance(x, Tracer) for x in self._leaves)
        return f"Error({self.get()})" if known else "Error(traced)"


tree.register_pytree_node(Error, lambda error: (error._leaves, error._type), lambda kind, leaves: Error(kind, leaves))


def check_error(error: Error) -> None:
    """Raise an exception if something failed; the inverse of `checkify`.

    Inside a function that is transformed by `checkify`, nothing is raised: the failure becomes part of the function's
    error.

    Args:
        error: result of a function transformed by `checkify`. If the call is traced, only the first failure of a batch
            counts.

    Raises:
        CorejaxRuntimeError: if something failed; its cause is the exception of the kind (`Error.get_exception`).
        TypeError: if `error` is not an `Error`.
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error takes an Error from a checkified function, got {error!r} of type {type(error).__name__}"
        )
    if not error._leaves:
        return
    if current_trace() is bottom_trace():
        raise_if_failed(error._type, error._leaves)
    else:
        _bind(error._type, error._leaves, get_aval(error._leaves[0]).ndim)


def _bind(error_type: ErrorType, leaves: Sequence[Any], batches: int) -> None:
    """Bind `check` to an error with `batches` leading batch axes."""
    if batches:

        def each(*elements: Any) -> list[Any]:
            _bind(error_type, elements, batches - 1)
            return []

        batch_flat(each, get_aval(leaves[0]).shape[0], leaves, [0] * len(leaves))
    else:
        check_p.bind(*leaves, error_type=error_type)
