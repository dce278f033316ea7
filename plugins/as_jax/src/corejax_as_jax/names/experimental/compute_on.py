"""`jax.experimental.compute_on`: programs run where their arguments are."""

import contextlib as _contextlib
from collections.abc import Iterator as _Iterator
from typing import Any as _Any


@_contextlib.contextmanager
def compute_on(compute_type: _Any) -> _Iterator[None]:
    """Accept a kind of core to compute on, and leave the choice to the compiler."""
    yield
