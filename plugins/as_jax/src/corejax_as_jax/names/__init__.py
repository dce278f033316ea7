"""`jax`: corejax, and what libraries ask of jax beside it."""

from importlib import import_module as _import_module
from typing import Any as _Any

import corejax as _corejax
from corejax import Array  # a class: not resolved lazily, so that the finder need not be asked for each annotation
from corejax_as_jax.version import JAX_VERSION as __version__

__version_info__ = tuple(int(number) for number in __version__.split("."))
__corejax__ = _corejax.__version__

_HOMES = {
    "Device": "devices",
    "jit": "jit",
    "make_jaxpr": "programs",
    "print_environment_info": "environment",
    "pure_callback": "callbacks",
    **dict.fromkeys(("custom_jvp", "grad", "jvp", "value_and_grad"), "derivatives"),
    **dict.fromkeys(("Ref", "empty_ref", "free_ref", "freeze", "new_ref", "typeof"), "references"),
}


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(_import_module(f"corejax_as_jax.{_HOMES[name]}"), name)
