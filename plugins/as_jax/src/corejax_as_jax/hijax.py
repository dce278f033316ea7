"""Classes of `jax.experimental.hijax` that Flax derives its own from when it is imported."""

from __future__ import annotations

from typing import Any, NoReturn

from corejax_as_jax.absent import no_op


class HiType:
    """A type of values that are not arrays."""


class MutableHiType(HiType):
    """A type of values that change."""


class HiPrimitive:
    """An operation on values that are not arrays: it can be defined, and not applied."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError(f"corejax has no hijax: {self.name} cannot be applied")


class control_flow_allowed_effects:
    """The table of effects that loops allow; it accepts any."""

    add_type = staticmethod(no_op)
