"""`Error`, which users hold, and `check_error`, which raises it."""

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
    """The first failure of a program, if any: what a function transformed by `checkify` gives beside its result.

    A pytree of arrays: it passes through `jit`, `vmap`, `scan`, and `has_aux=True` takes it out of `grad`.
    """

    __slots__ = ("_leaves", "_type")

    def __init__(self, error_type: ErrorType, leaves: Sequence[Any]) -> None:
        self._type = error_type
        self._leaves = tuple(leaves)

    def get(self) -> str | None:
        """What failed, in words, with the user's line; None where nothing did.

        Of a batch (the error of `vmap(checkify(f))`) there is a line for each element that failed.

        Raises:
            TypeError: the program has not run yet: the error is traced.
        """
        found = self.get_exception()
        return None if found is None else str(found)

    def get_exception(self) -> CheckedError | None:
        """As `get`: an exception, of the class of what failed; None where nothing did.

        Raises:
            TypeError: the program has not run yet: the error is traced.
        """
        return exception_of(self._type, self._leaves)

    def throw(self) -> None:
        """Raise what failed, if something did; see `check_error`."""
        check_error(self)

    def __repr__(self) -> str:
        known = all(isinstance(x, Array | np.ndarray) and not isinstance(x, Tracer) for x in self._leaves)
        return f"Error({self.get()})" if known else "Error(traced)"


tree.register_pytree_node(Error, lambda error: (error._leaves, error._type), lambda kind, leaves: Error(kind, leaves))


def check_error(error: Error) -> None:
    """Raise what failed, if something did; the inverse of `checkify`.

    Inside a function that is transformed by `checkify` nothing is raised: it becomes part of that function's error.

    Args:
        error: from a function transformed by `checkify`. Of a batch of them, the first that failed counts where the
            call is traced.

    Raises:
        CorejaxRuntimeError: something failed; its cause is the exception of the kind (`Error.get_exception`).
        TypeError: it is no `Error`.
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error takes an Error, as checkify gives it, got {error!r} of type {type(error).__name__}"
        )
    if not error._leaves:
        return
    if current_trace() is bottom_trace():
        raise_if_failed(error._type, error._leaves)
    else:
        _bind(error._type, error._leaves, get_aval(error._leaves[0]).ndim)


def _bind(error_type: ErrorType, leaves: Sequence[Any], batches: int) -> None:
    """Bind `check` to an error, or a batch of a batch of them."""
    if batches:

        def each(*elements: Any) -> list[Any]:
            _bind(error_type, elements, batches - 1)
            return []

        batch_flat(each, get_aval(leaves[0]).shape[0], leaves, [0] * len(leaves))
    else:
        check_p.bind(*leaves, error_type=error_type)
