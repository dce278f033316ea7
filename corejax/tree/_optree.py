"""Import optree such that its functions work until the interpreter ends.

On import optree's extension registers an `atexit` handler that empties its registry of node types. Handlers that were
registered before it run later, and would see each tuple, list and dict as one leaf. This module therefore skips that
handler; the memory is freed with the process. It has no effect if another library imported optree earlier.
"""

from __future__ import annotations

import atexit
from typing import Any

_register = atexit.register


def _except_extensions(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Register an `atexit` handler, unless it belongs to an extension module of pybind11."""
    owner = type(getattr(fun, "__self__", None)).__module__
    return fun if owner == "pybind11_builtins" else _register(fun, *args, **kwargs)


atexit.register = _except_extensions
try:
    import optree as optree
finally:
    atexit.register = _register
