"""Base classes of `jax.experimental.hijax`, which Flax subclasses when it is imported."""

from __future__ import annotations

from typing import Any, NoReturn

from corejax_as_jax.absent import no_op


class HiType:
    """A type of values that are not arrays."""


class MutableHiType(HiType):
    """A type of mutable values."""


class HiPrimitive:
    """An operation on values that are not arrays; it can be defined, but not applied."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError(f"corejax has no hijax: {self.name} cannot be applied")


class control_flow_allowed_effects:
    """The table of effects that loops allow; it accepts every effect."""

    add_type = staticmethod(no_op)
