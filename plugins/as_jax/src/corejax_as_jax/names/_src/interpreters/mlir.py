"""`jax._src.interpreters.mlir`: its public names."""

from importlib import import_module as _import_module


def __getattr__(name):
    return getattr(_import_module("jax.interpreters.mlir"), name)
