"""`jax.experimental.xla_metadata`."""

import contextlib as _contextlib
from collections.abc import Iterator as _Iterator
from typing import Any as _Any


@_contextlib.contextmanager
def set_xla_metadata(**attributes: _Any) -> _Iterator[None]:
    """Accept metadata, which has no effect on results."""
    yield
