"""`corejax.experimental.key_reuse`: whether a key is used twice.

With the setting `debug_key_reuse` a key that was used before is refused wherever something draws with it: functions
of `corejax.random`, compiled functions, loops and branches. `check_key_reuse` looks at a program without running it.
"""

from __future__ import annotations

from corejax.extend.messages import KeyReuseError
from corejax_random.reuse.programs import check_key_reuse, check_key_reuse_jaxpr

__all__ = ["KeyReuseError", "check_key_reuse", "check_key_reuse_jaxpr"]
