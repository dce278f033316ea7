"""`OptionalRules`: rules that no primitive requires; they are never derived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from corejax.base.provenance import Provenance
from corejax.base.tables import Table
from corejax.core.primitive import Primitive
from corejax.rules._messages import duplicate_rule

__corejax_registers_for_caller__ = True

_F = TypeVar("_F", bound=Callable[..., Any])


class OptionalRules(Table[Primitive, Callable[..., Any]]):
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

    @overload
    def register(self, key: Primitive, value: _F, *, override: bool = False, provenance: Any = None) -> _F: ...
    @overload
    def register(self, key: Primitive, *, override: bool = False, provenance: Any = None) -> Callable[[_F], _F]: ...

    def register(
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
