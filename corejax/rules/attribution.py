"""Add a note to an exception that a rule raised: the rule, its author and the user's line.

The exception itself is not changed. This code runs only after an exception, so it costs nothing otherwise.
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
from corejax.messages.source_info import Source
from corejax.rules import Rule, RuleRegistry, impl_rules, registries

_OF_VALUES = (ConcretizationTypeError, NonConcreteBooleanIndexError)


@failed.connect
def attribute_to_rule(
    error: BaseException, primitive: Primitive, source: Source | None = None, kind: str | None = None
) -> None:
    """Add a note to an exception that says which of the primitive's rules raised it, unless it has a note.

    Errors of corejax get no note, because their messages name the rule; errors of a rule that needs the value of a
    tracer do. A TypeError or ValueError of an abstract-eval rule is the normal way to reject operands, and gets the
    name of the user's function. `source` is the user's line, if it is not the running one; `kind` is the kind of the
    rule, if the caller knows it.
    """
    if is_noted(error) or isinstance(error, NotLinearError):
        return
    candidates = list(registries.values()) if kind is None else [registries[kind]]
    is_explained = isinstance(error, CorejaxError) and not isinstance(error, _OF_VALUES)
    culprit = None if is_explained else _raised_by(error, primitive, candidates)
    if culprit is None:
        _attribute_call_or_body(error, primitive, source, candidates)
        return
    registry, rule = culprit
    if registry.kind == "abstract_eval" and isinstance(error, TypeError | ValueError):
        _name_function(error)
        return
    _note(error, primitive, source, f"This came out of the {registry.title}", rule.provenance, registry.kind)


def _name_function(error: TypeError | ValueError) -> None:
    """Prefix the message of an abstract-eval rule with the function that the user called: `celu: gt ...`."""
    name = source_info.called_function()
    if name and len(error.args) == 1 and isinstance(error.args[0], str) and name not in error.args[0]:
        error.args = (f"{name}: {error.args[0]}",)


def note_origin(error: BaseException, primitive: Primitive, what: str, source: Source | None = None) -> None:
    """Add a note to an exception that a user's function raised, which a primitive called.

    Args:
        error: the exception.
        primitive: the primitive that ran.
        what: the function, as a phrase: "the callback 'f' of pure_callback".
        source: the user's line that applied the primitive, if it is not the running one.
    """
    if not is_noted(error):
        mark(error, primitive)
        add_note(error, f"This came out of {what}{source_info.needed(', called at', source)}.")


def _note(
    error: BaseException, primitive: Primitive, source: Source | None, what: str, origin: object,
    kind: str | None = None,
) -> None:  # fmt: skip
    mark(error, primitive, kind)
    distribution = getattr(origin, "distribution", None)
    author = f"{origin}, of the distribution {distribution}" if distribution else origin
    add_note(
        error,
        f"{what} of primitive {primitive.name!r}, from {author}{source_info.needed('; it was needed at', source)}. "
        f"To check the rule: corejax verify {primitive.name}",
    )


def _attribute_call_or_body(
    error: BaseException, primitive: Primitive, source: Source | None, candidates: list[RuleRegistry]
) -> None:
    """Add a note if a rule does not accept the arguments, or if a decomposition or a plugin's derivation raised."""
    if isinstance(error, TypeError):
        for registry in candidates:
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
        # Rules of kinds that plugins add are derived by the plugin's code, which is named as their origin.
        for registry in candidates:
            rule = registry.rule_of(primitive)
            code = getattr(rule and inspect.unwrap(rule.fn), "__code__", None)
            if rule is None or rule.derived is None or code not in codes or registry.provenance.package == "corejax":
                continue
            maker = Provenance(rule.fn.__module__, code.co_filename, code.co_firstlineno)
            what = f"This came out of the {registry.title} that is derived ({rule.derived})"
            _note(error, primitive, source, what, maker, registry.kind)
            return


def _raised_by(
    error: BaseException, primitive: Primitive, candidates: list[RuleRegistry]
) -> tuple[RuleRegistry, Rule] | None:
    """Return the primitive's rule in the outermost frame that the exception passed through.

    An inner rule of the same primitive has been handled already, when the inner application failed.
    """
    codes = _codes(error)
    matches: list[tuple[int, RuleRegistry, Rule]] = []
    for registry in candidates:
        for platform in (None, *registry.platforms_of(primitive)):
            rule = registry.rule_of(primitive, platform)
            if rule is not None and rule.derived is None:
                written = getattr(inspect.unwrap(rule.fn), "__code__", None)
                if written in codes:
                    matches.append((codes.index(written), registry, rule))
                elif written is None and candidates == [impl_rules]:  # a function in C has no frame
                    matches.append((len(codes), registry, rule))
    return min(matches, key=lambda item: item[0])[1:] if matches else None


def _codes(error: BaseException) -> list[CodeType]:
    """Return the code of the frames that an exception went through, outermost first."""
    from traceback import walk_tb  # imported here because only errors need it

    return [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
