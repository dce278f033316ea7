"""Impl rules that hand large operands to a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import MissingRuleError, Primitive, impl_rules

_found: dict[Primitive, Callable[..., Any]] = {}


def compiled_impl(primitive: Primitive) -> Callable[..., Any] | None:
    """The impl rule that runs the compiled program of one equation, on `Array`s; None where nothing compiles."""
    found = _found.get(primitive)
    if found is None:
        try:
            found = _found[primitive] = impl_rules.derived(primitive)
        except MissingRuleError:
            return None
    return found
