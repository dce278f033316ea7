"""The dtype that a `dtype` argument asks for, with JAX's warning if `config.x64_compat` makes it narrower."""

from __future__ import annotations

from typing import Any

from corejax.extend import config, dtypes
from corejax.extend.messages import called_function, warn_user

__all__ = ["requested_dtype"]


def requested_dtype(dtype: Any) -> Any:
    """Return the dtype for a `dtype` argument; warn if it is 64 bits wide and `config.x64_compat` makes it narrower.

    Python's `int`, `float` and `complex` ask for the default width, and do not warn.

    Raises:
        TypeError: `dtype` is not a dtype.
    """
    canonical = dtypes.canonicalize_dtype(dtype)
    if config.x64_compat and (wide := dtypes.dtype(dtype)) != canonical:
        # Programs for JAX ignore the warning by the first words of its text.
        warn_user(
            f"Explicitly requested dtype {wide} is not available in {called_function()}: it becomes {canonical}. For "
            "64-bit dtypes, turn on the setting enable_x64 (JAX_ENABLE_X64=1)"
        )
    return canonical
