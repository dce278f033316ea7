"""`jax.make_jaxpr`: programs whose equations have JAX's attributes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import corejax
from corejax.extend import ClosedJaxpr, Jaxpr
from corejax.extend.messages import scope_of, scope_text
from corejax_as_jax.core import subjaxprs


class NameStack(str):
    """The named scopes and transformations of an equation, `transpose(jvp(layer))/dense`."""

    __slots__ = ()

    @property
    def stack(self) -> tuple[str, ...]:
        """The scopes, from the outside in."""
        return tuple(self.split("/")) if self else ()


class SourceInfo(tuple[Any, ...]):
    """Where an equation comes from, as corejax records it; with the attributes that JAX's users read."""

    __slots__ = ()

    @property
    def name_stack(self) -> NameStack:
        """The named scopes and transformations."""
        return NameStack(scope_text(scope_of(self)))

    @property
    def traceback(self) -> None:
        """None; corejax records the user's line only."""
        return None


def make_jaxpr(fun: Callable[..., Any], *options: Any, **more: Any) -> Callable[..., Any]:
    """Return a function that traces `fun` and returns its program; see `corejax.make_jaxpr`."""
    trace: Callable[..., Any] = corejax.make_jaxpr(fun, *options, **more)

    @functools.wraps(trace)
    def traced(*args: Any, **kwargs: Any) -> Any:
        made = trace(*args, **kwargs)
        closed: ClosedJaxpr = made[0] if isinstance(made, tuple) else made
        describe(closed.jaxpr)
        return made

    return traced


def describe(jaxpr: Jaxpr) -> None:
    """Give the equations of a program, and of the programs inside it, JAX's attributes.

    Their `source_info` gets attributes, and their operands and results become lists.
    """
    for eqn in jaxpr.eqns:
        if type(eqn.source_info) is not SourceInfo:
            eqn.source_info = SourceInfo(eqn.source_info or (None, 0))
        eqn.invars, eqn.outvars = list(eqn.invars), list(eqn.outvars)  # type: ignore[assignment]  # lists in JAX
    for inner in subjaxprs(jaxpr):
        describe(inner)
