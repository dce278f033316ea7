"""`corejax.experimental.key_reuse`: detection of keys that are used twice.

With the setting `debug_key_reuse`, a second use of a key raises an error: in functions of `corejax.random`, compiled
functions, loops and branches. `check_key_reuse` checks a function without running it.
"""

from __future__ import annotations

from corejax.extend.messages import KeyReuseError
from corejax_random.reuse.programs import check_key_reuse, check_key_reuse_jaxpr

__all__ = ["KeyReuseError", "check_key_reuse", "check_key_reuse_jaxpr"]
