"""Which rule an exception came out of: a note on it, with the rule's author and the user's line.

The exception itself stays what the rule raised. All of it happens after something was raised.
"""

from __future__ import annotations

import inspect
from types import CodeType

from corejax.base.provenance import Provenance
from corejax.base.texts import add_note, message_of
from corejax.core.primitive import Primitive, failed
from corejax.errors import ConcretizationTypeError, CorejaxError, NonConcreteBooleanIndexError, NotLinearError
from corejax.messages import source_info
from corejax.messages.marks import is_noted, mark
from corejax.rules import Rule, RuleRegistry, impl_rules, registries

_OF_VALUES = (ConcretizationTypeError, NonConcreteBooleanIndexError)


@failed.connect
def attribute_to_rule(
    error: BaseException, primitive: Primitive, source: source_info.Source | None = None, kind: str | None = None
) -> None:
    """Note on an exception which of a primitive's rules raised it, if one did and the exception has no note yet.

    Errors of corejax's own say it themselves, but for those of a rule that looks at a traced value; and a TypeError or
    ValueError of an abstract-eval rule is what such a rule refuses operands with. `source` is the user's line, if that
    is not the one that is running, and `kind` the kind of the rule that ran, if the caller knows it.
    """
    if is_noted(error) or isinstance(error, NotLinearError):
        return
    among = list(registries.values()) if kind is None else [registries[kind]]
    says_itself = isinstance(error, CorejaxError) and not isinstance(error, _OF_VALUES)
    found = None if says_itself else _raised_by(error, primitive, among)
    if found is None:
        _attribute_others(error, primitive, source, among)
        return
    registry, rule = found
    if registry.kind == "abstract_eval" and isinstance(error, TypeError | ValueError):
        _name_function(error)
        return
    _note(error, primitive, source, f"This came out of the {registry.title}", rule.provenance, registry.kind)


def _name_function(error: TypeError | ValueError) -> None:
    """Begin what a type rule says with the function that the user called, where it does not name it: `celu: gt ...`."""
    name = source_info.called_function()
    if name and len(error.args) == 1 and isinstance(error.args[0], str) and name not in error.args[0]:
        error.args = (f"{name}: {error.args[0]}",)


def note_origin(
    error: BaseException, primitive: Primitive, what: str, source: source_info.Source | None = None
) -> None:
    """Note on an exception that a function of the user's, which a primitive calls, raised it.

    Args:
        error: what was raised.
        primitive: the primitive that ran.
        what: the function, a phrase: "the callback 'f' of pure_callback".
        source: the user's line that applied the primitive, if that is not the one that is running.
    """
    if not is_noted(error):
        mark(error, primitive)
        add_note(error, f"This came out of {what}{source_info.needed(', called at', source)}.")


def _note(
    error: BaseException, primitive: Primitive, source: source_info.Source | None, what: str, origin: object,
    kind: str | None = None,
) -> None:  # fmt: skip
    mark(error, primitive, kind)
    distribution = getattr(origin, "distribution", None)
    whose = f"{origin}, of the distribution {distribution}" if distribution else origin
    add_note(
        error,
        f"{what} of primitive {primitive.name!r}, from {whose}{source_info.needed('; it was needed at', source)}. "
        f"To check the rule: corejax verify {primitive.name}",
    )


def _attribute_others(
    error: BaseException, primitive: Primitive, source: source_info.Source | None, among: list[RuleRegistry]
) -> None:
    """Note what is not raised inside a rule: by its call, because it does not take the arguments; or in a body."""
    if isinstance(error, TypeError):
        for registry in among:
            rule = registry.rule_of(primitive)
            name = getattr(rule and rule.fn, "__qualname__", None)
            if rule is not None and rule.derived is None and name and message_of(error).startswith(f"{name}() "):
                what = f"This was the call of the {registry.title}"
                _note(error, primitive, source, what, rule.provenance, registry.kind)
                return
    codes = _codes(error)
    written = getattr(primitive.decomposition, "__code__", None)
    if "higher_order" not in primitive.tags and written in codes:
        _note(error, primitive, source, "This came out of the decomposition", primitive.provenance)
    elif not isinstance(error, CorejaxError):
        # A derived rule of a kind that a plugin brings: the plugin's own way to derive made it.
        for registry in among:
            rule = registry.rule_of(primitive)
            code = getattr(rule and inspect.unwrap(rule.fn), "__code__", None)
            if rule is None or rule.derived is None or code not in codes or registry.provenance.package == "corejax":
                continue
            maker = Provenance(rule.fn.__module__, code.co_filename, code.co_firstlineno)
            what = f"This came out of the {registry.title} that is derived ({rule.derived})"
            _note(error, primitive, source, what, maker, registry.kind)
            return


def _raised_by(
    error: BaseException, primitive: Primitive, among: list[RuleRegistry]
) -> tuple[RuleRegistry, Rule] | None:
    """The rule of the primitive that is outermost among the frames that the exception went through.

    What that one called, such as the primitive itself with other operands, has had its own chance to be noted.
    """
    codes = _codes(error)
    found: list[tuple[int, RuleRegistry, Rule]] = []
    for registry in among:
        for platform in (None, *registry.platforms_of(primitive)):
            rule = registry.rule_of(primitive, platform)
            if rule is not None and rule.derived is None:
                written = getattr(inspect.unwrap(rule.fn), "__code__", None)
                if written in codes:
                    found.append((codes.index(written), registry, rule))
                elif written is None and among == [impl_rules]:  # a function in C has no frame
                    found.append((len(codes), registry, rule))
    return min(found, key=lambda item: item[0])[1:] if found else None


def _codes(error: BaseException) -> list[CodeType]:
    """Return the code of the frames that an exception went through, outermost first."""
    from traceback import walk_tb  # needed for an error only

    return [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
