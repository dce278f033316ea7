"""corejax under the name `jax`: libraries and programs written for JAX run on corejax, unchanged.

    import corejax_as_jax; corejax_as_jax.install()     # before anything imports jax
    python -m corejax_as_jax prog.py args...            # or -m module, or -c code
    python -m pytest -p corejax_as_jax.pytest_plugin    # tests of a library
    corejax as-jax -- prog.py args...                   # subprocesses of the program included

The module `jax.x` is the file `names/x.py` if there is one, otherwise `corejax.x`. A file in `names` imports what
`corejax.x` does not have or has under another name; all other names are those of `corejax.x`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from corejax_as_jax.version import PATH


def installed() -> bool:
    """Return whether corejax has the name `jax` in this process."""
    return hasattr(sys.modules.get("jax"), "__corejax__")


def install() -> None:
    """Give corejax the name `jax` in this process; call it before anything imports jax.

    `JAX_ENABLE_X64` and other variables of the environment that JAX reads set the settings of corejax, and arrays get
    JAX's dtypes: 32 bits wide unless `jax_enable_x64` is on.

    Raises:
        ImportError: jax is imported already.
    """
    if installed():
        return
    there = sys.modules.get("jax")
    if there is not None and getattr(there, "__file__", None) != str(PATH / "jax" / "__init__.py"):
        raise ImportError(
            f"jax {getattr(there, '__version__', '')} is imported already, from {getattr(there, '__file__', '?')}: a "
            "process has one jax. Call corejax_as_jax.install() before the first import of jax or of a library that "
            "imports jax, or run the program by `python -m corejax_as_jax prog.py`",
            name="jax",
        )
    from corejax_as_jax.finder import JaxFinder

    _read_environment()
    sys.meta_path.insert(0, JaxFinder())
    sys.modules.pop("jax", None)
    import_module("jax")


def _read_environment() -> None:
    """Set corejax's settings to what JAX reads from the environment."""
    from corejax import config

    config.update("x64_compat", True)
    for name, value in os.environ.items():
        if name.startswith("JAX_"):
            try:
                config.update(name.lower(), value)
            except AttributeError:
                continue  # a setting that corejax does not have, a compiler flag of JAX's for example
