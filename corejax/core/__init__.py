"""Types, traces and primitives. The names exported here are those of `jax.core`, and imported at first use."""

from corejax.base import stubs as _stubs
from corejax.base.texts import no_such_name as _no_such_name

_names = _stubs.names_of_stub(__name__)
__all__ = [*_names]


def __getattr__(name: str) -> object:
    if name not in _names:
        raise _no_such_name(__name__, name, _names)
    value = globals()[name] = _stubs.import_with_slots(*_names[name])
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_names})
