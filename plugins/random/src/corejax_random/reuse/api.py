"""`corejax.experimental.key_reuse`: whether a key is used twice.

With the setting `debug_key_reuse` functions of `corejax.random` refuse a key that was used before, run or traced;
`check_key_reuse` looks at a function's whole program, loops included.
"""

from __future__ import annotations

from corejax.extend import KeyReuseError
from corejax_random.reuse.programs import check_key_reuse, check_key_reuse_jaxpr

__all__ = ["KeyReuseError", "check_key_reuse", "check_key_reuse_jaxpr"]
