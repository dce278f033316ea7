"""Parameters of primitives as keys of what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_INEXACT = (float, complex, np.inexact)


def told_apart(params: Mapping[str, Any]) -> Iterator[Any]:
    """Parameters, of which none are equal that a rule can tell apart: 0.0 and -0.0, 1 and True. NaNs are."""
    for name, value in params.items():
        yield name
        yield _exact(value)


def _exact(value: Any) -> Any:
    kind = type(value)
    if kind is tuple:
        return tuple([_exact(v) for v in value])
    return (kind, repr(value) if isinstance(value, _INEXACT) else value)
