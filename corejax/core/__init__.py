"""Types, traces and primitives. The names exported here are those of `jax.core`, and imported at first use."""

from corejax.base import stubs as _stubs

_names = _stubs.names_of_stub(__name__)
__all__ = [*_names]


def __getattr__(name: str) -> object:
    if name not in _names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _stubs.import_with_slots(*_names[name])
