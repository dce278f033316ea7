"""`OptionalRules`: rules that no primitive requires; they are never derived."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from corejax.base.provenance import Provenance
from corejax.base.tables import Table
from corejax.rules._messages import duplicate_rule

if TYPE_CHECKING:
    from corejax.core.primitive import Primitive

__corejax_registers_for_caller__ = True

F = TypeVar("F", bound=Callable[..., Any])


class Register(Protocol):
    """The method `register` of a registry: it returns the rule, or a decorator if it is called without one."""

    @overload
    def __call__(self, primitive: Primitive, rule: F, **options: object) -> F: ...
    @overload
    def __call__(self, primitive: Primitive, **options: object) -> Callable[[F], F]: ...
    def __get__(self, registry: object, kind: type | None = None) -> Register: ...


def registering(method: Callable[..., object]) -> Register:
    """Give a method the type `Register`."""
    return cast("Register", method)


class OptionalRules(Table["Primitive", Callable[..., Any]]):
    """A dict from primitive to rule: `rules[primitive] = rule`, or `rules.register(primitive, rule)`.

    Args:
        kind: the rule kind's name in tables ("dce").
        changed: called with a primitive and its new rule, or None, when the rule changes.
    """

    def __init__(self, kind: str, changed: Callable[[Any, Any], None] | None = None) -> None:
        super().__init__(
            f"{kind} rule",
            changed=changed,
            refusal=lambda primitive, earlier, later: duplicate_rule(f"{kind} rule", (primitive, None), earlier, later),
        )
        self.kind = kind
        optional_rules[kind] = self

    @registering
    def register(  # type: ignore[override]  # a table's method returns nothing
        self, key: Any, value: Any = None, *, override: bool = False, provenance: Provenance | None = None
    ) -> Any:
        """Register a rule for a primitive; without a rule, return a decorator.

        Raises:
            DuplicateRegistrationError: the primitive has a rule and `override` is False.
            TypeError: the rule is not callable.
        """
        if value is None:
            return lambda rule: self.register(key, rule, override=override, provenance=provenance)
        if not callable(value):
            raise TypeError(f"a {self.name} is a function, got {value!r} for primitive {key.name!r}")
        super().register(key, value, override=override, provenance=provenance)
        return value


optional_rules: dict[str, OptionalRules] = {}
