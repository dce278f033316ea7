"""`jax._src.interpreters.batching`: its public names."""

from importlib import import_module as _import_module
from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    return getattr(_import_module("jax.interpreters.batching"), name)
