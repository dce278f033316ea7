"""corejax under the name `jax`: libraries and programs written for JAX run on corejax, unchanged.

    import corejax_as_jax; corejax_as_jax.install()     # before anything imports jax
    python -m corejax_as_jax prog.py args...            # or -m module, or -c code
    python -m pytest -p corejax_as_jax.pytest_plugin    # tests of a library
    corejax as-jax -- prog.py args...                   # also for subprocesses of the program

The module `jax.x` is the file `names/x.py` if it exists, otherwise `corejax.x`. A file in `names` defines the names
that `corejax.x` lacks or has under another name; all other names are those of `corejax.x`.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from corejax_as_jax.version import PATH


def installed() -> bool:
    """Return whether `jax` is corejax in this process."""
    return hasattr(sys.modules.get("jax"), "__corejax__")


def install() -> None:
    """Make `import jax` import corejax in this process; call it before anything imports jax.

    Environment variables that JAX reads, such as `JAX_ENABLE_X64`, set the settings of corejax. Arrays get JAX's
    dtypes: 32 bits wide unless `jax_enable_x64` is on. Programs run in the background, unless
    `JAX_CPU_ENABLE_ASYNC_DISPATCH` is 0.

    Raises:
        ImportError: jax is already imported, or the files of this package are not there.
    """
    if installed():
        return
    from corejax_as_jax.refusals import check_process

    check_process(sys.modules.get("jax"))
    from corejax.extend.messages import register_internal
    from corejax_as_jax.finder import JaxFinder

    register_internal(os.path.dirname(__file__))
    _read_environment()
    _fill_slots()
    sys.meta_path.insert(0, JaxFinder())
    # For `importlib.metadata.version("jax")`, and for the workers of multiprocessing, which get this process's path.
    if str(PATH) not in sys.path:
        sys.path.insert(1, str(PATH))  # before an installed jax, after the directory of the program
    sys.modules.pop("jax", None)
    import_module("jax")
    import_module("corejax_as_jax.products").compile_products()
    _run_in_background()


def _fill_slots() -> None:
    """Give every type a sharding, as in JAX, before something imports the plugin that knows shardings.

    Stages of compilation and exported functions get the structures of `jax.tree`.
    """
    from corejax.extend.types import unsplit_sharding
    from corejax_xla_backend import structures

    def unsplit(ndim: int) -> Any:
        import_module("corejax_parallel.contexts")  # fills the slot
        assert unsplit_sharding.value is not None
        return unsplit_sharding.value(ndim)

    if unsplit_sharding.value is None:
        unsplit_sharding.value = unsplit
    structures.conversion = lambda structure: import_module("corejax_as_jax.trees").of_structure(structure)


def _read_environment() -> None:
    """Apply the environment variables that JAX reads to corejax's settings."""
    from corejax import config
    from corejax_as_jax.settings import declare

    declare()
    config.update("x64_compat", True)
    for name, value in os.environ.items():
        if name.startswith("JAX_"):
            try:
                config.update(name.lower(), value)
            except AttributeError:
                continue  # a setting that corejax does not have, such as a compiler flag of JAX


def _run_in_background() -> None:
    """Let programs run in the background, as in JAX, unless the environment has the setting.

    This comes after the import of `corejax.lax`, which loads the plugin that declares the setting, with the other
    plugins of array methods; before, all plugins would be loaded.
    """
    from corejax import config

    if {"JAX_CPU_ENABLE_ASYNC_DISPATCH", "COREJAX_CPU_ENABLE_ASYNC_DISPATCH"} & os.environ.keys():
        return
    with suppress(AttributeError):  # the plugin is switched off
        config.update("cpu_enable_async_dispatch", True)
