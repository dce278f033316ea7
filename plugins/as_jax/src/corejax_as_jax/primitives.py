"""`jax.extend.core.Primitive`: a primitive that gets its rules one by one, in JAX's signatures."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import corejax
from corejax import extend
from corejax.extend import abstract_eval_rules, impl_rules, primitives

_EFFECT = "jax.effect"


class _PrimitiveType(type):
    """The metaclass that makes every primitive of corejax an instance of JAX's class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, extend.Primitive)


class Primitive(extend.Primitive, metaclass=_PrimitiveType):
    """A primitive of a library written for JAX.

    Several primitives may have the same name, and attributes such as `multiple_results` are set after construction, as
    in JAX.

    Args:
        name: the name in printed programs.
    """

    def __init__(self, name: str) -> None:
        registered = next(n for n in _numbered(f"jax.{name}") if n not in primitives)
        super().__init__(registered)
        self.registered_name = registered
        self.name = name

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return (extend.find_primitive, (self.registered_name,))

    def def_impl(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Register the rule that evaluates the primitive; its operands are arrays."""
        register(impl_rules, self, rule, device=True)
        self.impl = rule
        return rule

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Register the rule for types: `(*avals, **params) -> aval`, or a list if `multiple_results`."""

        def types(*avals: Any, **params: Any) -> Any:
            out = rule(*avals, **params)
            return list(out) if self.multiple_results else out

        register(abstract_eval_rules, self, types)
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Register a rule for types and effects: `(*avals, **params) -> (avals, effects)`."""

        def types(*avals: Any, **params: Any) -> Any:
            out, effects = rule(*avals, **params)
            if effects:
                self.effects = frozenset({_EFFECT})
            return out

        self.def_abstract_eval(types)
        return rule

    def def_bind_with_trace(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Register an implementation of `bind_with_trace(trace, args, avals, params)`."""
        self.bind_with_trace = rule  # type: ignore[method-assign]  # replaced for this primitive
        return rule


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}.{i}" for i in itertools.count(1))


def register(registry: Any, primitive: Any, rule: Callable[..., Any], **flags: Any) -> None:
    """Register a rule, replacing an earlier one."""
    registry.register(primitive, rule, override=bool(registry.registered(primitive)), **flags)


def apply_primitive(primitive: Any, *args: Any, **params: Any) -> Any:
    """Evaluate a primitive by a compiled program, for impl rules of libraries."""
    return _compiled(primitive, tuple(sorted(params.items())))(*args)


@functools.lru_cache(maxsize=1024)
def _compiled(primitive: Any, params: tuple[tuple[str, Any], ...]) -> Any:
    return corejax.jit(lambda *args: primitive.bind(*args, **dict(params)))


_NAMES = {"jit": "xla_call", "pjit": "xla_call", "linear_solve": "custom_linear_solve", "remat": "remat2"}
_never_bound: dict[str, Primitive] = {}


def primitive_of_name(name: str) -> Any:
    """Return the primitive that JAX calls `name`, `add_p` for example.

    Raises:
        AttributeError: the primitive does not exist.
    """
    stem = name.removesuffix("_p")
    if name in ("call_p", "closed_call_p", "core_call_p"):  # libraries ask whether an equation has them
        return _never_bound.setdefault(name, Primitive(stem))
    if stem != name:
        found = extend.find_primitive(_NAMES.get(stem, stem)) or getattr(corejax.lax, name, None)
        if found is not None:
            return found
    raise AttributeError(name)
