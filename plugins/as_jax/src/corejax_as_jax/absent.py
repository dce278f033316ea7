"""Stand-ins for names that corejax lacks and libraries refer to when they are imported."""

from __future__ import annotations

from typing import Any, NoReturn


class Absent:
    """A class that cannot be instantiated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"corejax has no {type(self).__name__}")


def absent_class(name: str) -> type:
    """Return a class for `isinstance` and annotations that cannot be instantiated."""
    return type(name, (Absent,), {"__doc__": f"corejax has no {name}."})


def absent_function(name: str) -> Any:
    """Return a function that raises NotImplementedError."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"corejax has no {name}")

    function.__name__ = function.__qualname__ = name
    return function


def no_op(*args: Any, **kwargs: Any) -> None:
    """Accept any arguments and do nothing."""


class OpenTable(dict[Any, None]):
    """A dict that has every key, with the value None: registrations in it have no effect."""

    def __missing__(self, key: Any) -> None:
        return None
