"""Impl rules that hand large operands to a compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corejax.extend import MissingRuleError, Primitive, impl_rules


@functools.cache
def compiled_impl(primitive: Primitive) -> Callable[..., Any] | None:
    """The impl rule that runs the compiled program of one equation, on `Array`s; None where nothing compiles."""
    try:
        return impl_rules.derived(primitive)
    except MissingRuleError:
        return None
