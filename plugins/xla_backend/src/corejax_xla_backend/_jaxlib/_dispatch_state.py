"""The process-wide state of jaxlib's C++ dispatcher, shared with jax if jax is imported.

The dispatcher reads three settings through pointers that have to be set first: 64-bit types, "run without jit",
and a hook after each call. jax sets them when it is imported, and its settings then hold for every dispatcher in
the process; setting them again would disconnect jax from its own. So ours are set only if jax's are not, jax may
replace them later, and nothing here depends on their values:

- 64-bit types: this setting decides how the dispatcher converts Python and NumPy scalars and arrays, not device
  buffers. Once jax is imported, our dispatchers see buffers only, because their pytree registry converts host
  values to buffers (``DispatchRegistry.make_buffers``).
- run without jit: the dispatcher then calls the plain function that it was given, which does the same slowly.
- the hook (``jax_debug_nans``) inspects jax's own arrays and ignores ours.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from corejax_xla_backend._live import dispatchers

from ._probe import core

_kept: list[Any] = []  # keeps the settings alive: C++ holds bare pointers to them


@cache
def ensure_dispatch_state() -> None:
    """Initialise the C++ dispatcher's settings, unless jax is imported, or being imported, and sets its own."""
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
    """Return whether jax has set the settings: two in ``jax._src.config`` and the hook in ``jax._src.api``.

    A module ``jax`` without these is something else: the user's own file ``jax.py``, or an empty folder.
    """
    if "jax" not in sys.modules:
        return False
    try:
        # If another thread is importing jax, this waits for it; afterwards it does nothing.
        _, config, api = map(importlib.import_module, ("jax", "jax._src.config", "jax._src.api"))
        return hasattr(config, "disable_jit") and hasattr(api, "jit")
    except Exception:
        return False


class _JaxWatch:
    """A finder on ``sys.meta_path`` that finds no module, but runs an action when jax is about to be imported."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action: Callable[[], object] | None = action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Run the action if jax is looked up for the first time, and return None."""
        if name == "jax":
            action, self._action = self._action, None
            if action is not None:
                action()


def before_jax(action: Callable[[], object]) -> None:
    """Run ``action`` once, before jax is imported; at once if jax is imported already or being imported."""
    if "jax" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _JaxWatch(action))


def make_dispatcher(*args: Any) -> Any:
    """Return a C++ dispatcher made with these arguments, which `clear_dispatchers` reaches while it lives."""
    ensure_dispatch_state()
    dispatcher = core.pjit(*args)
    dispatchers.add(dispatcher)
    return dispatcher


@cache
def dispatch_context() -> Any:
    """Return the setting that is part of every call's signature: a value per thread, and a default for all threads.

    Calls under different values have different entries in the dispatcher's cache, at no cost in Python. The value is
    hashed on every call of every dispatcher in the process, including jax's, so it is a small integer.
    """
    return core.config.Config("corejax_context", 0, include_in_jit_key=True)


NO_CONTEXT = core.config.unset
"""The value of a thread that follows the default."""
