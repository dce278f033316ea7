"""The process-wide state of jaxlib's C++ dispatcher, shared with jax where jax is imported too.

The dispatcher reads three settings through pointers that whoever imports first must set: 64-bit types, "run
without jit", and a hook after each call. jax sets them when it is imported, and from then on its settings
hold for every dispatcher in the process; setting them again would cut jax off from its own. So ours are set
only where jax's are not, jax may replace them later, and nothing here depends on their values:

- 64-bit types: they decide what a Python or NumPy *scalar or array* means to the dispatcher, not a device
  buffer. Ours only ever sees buffers, since its pytree registry turns host values into buffers on the way
  (``DispatchRegistry``).
- run without jit: the dispatcher then calls the plain function that it was given, which does the same slowly.
- the hook (``jax_debug_nans``) looks at jax's own arrays; ours pass it unseen.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from corejax_xla_backend._live import dispatchers

from ._probe import core

_kept: list[Any] = []  # C++ holds bare pointers to these


@cache
def ensure_dispatch_state() -> None:
    """Make the C++ dispatcher usable; leaves jax's settings alone where jax is, or is being, imported."""
    if not _jax_has_set_it():
        config = core.config.Config
        settings = [
            config("corejax_enable_x64", True),
            config("corejax_disable_jit", False),
            config("corejax_hook", None),
        ]
        _kept.extend(settings)
        core.jax_jit.set_enable_x64_state(settings[0])
        core.jax_jit.set_disable_jit_state(settings[1])
        core.jax_jit.set_post_hook_state(settings[2])


def _jax_has_set_it() -> bool:
    """jax sets two of the three in ``jax._src.config`` and the hook in ``jax._src.api``.

    A module of that name without these is something else: a file ``jax.py`` of the user's, an empty folder.
    """
    if "jax" not in sys.modules:
        return False
    try:
        # Waits for an import that is going on in another thread; does nothing once it is over.
        _, config, api = map(importlib.import_module, ("jax", "jax._src.config", "jax._src.api"))
        return hasattr(config, "disable_jit") and hasattr(api, "jit")
    except Exception:
        return False


class _JaxWatch:
    """A finder that finds nothing: it is asked for jax before jax is imported."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Nothing; runs the action the first time that jax is looked for."""
        if name == "jax":
            action, self._action = self._action, None
            if action is not None:
                action()


def before_jax(action: Callable[[], None]) -> None:
    """Run ``action`` once, before jax is imported; at once where it is, or is being, imported."""
    if "jax" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _JaxWatch(action))  # type: ignore[arg-type]


def make_dispatcher(*args: Any) -> Any:
    """jaxlib's C++ dispatcher, made of what it takes; known to `clear_dispatchers` as long as it lives."""
    ensure_dispatch_state()
    dispatcher = core.pjit(*args)
    dispatchers.add(dispatcher)
    return dispatcher


@cache
def dispatch_context() -> Any:
    """Return the value that is part of every dispatcher's signature: per thread, over a default for all threads.

    A call made under another value is another entry in the dispatcher's cache, at no cost in Python. It is hashed on
    every call of every dispatcher in the process (jax's too), so it is a small integer.
    """
    return core.config.Config("corejax_context", 0, include_in_jit_key=True)


NO_CONTEXT = core.config.unset
"""What a thread that follows the default has in the place of a value."""
