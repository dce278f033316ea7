"""Running one rule of a primitive, and holding what it gives against what abstract evaluation promises.

Errors name primitive, rule and author, what came and what has to come. Types are interned, so where a rule is right
the checks are comparisons of objects; sentences are made only after something did not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from corejax.core.avals import ShapedArray, get_aval
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace, state
from corejax.dtypes import is_inexact
from corejax.messages import source_info
from corejax.messages.marks import mark
from corejax.rules import RuleRegistry, jvp_rules, transpose_rules, vmap_rules
from corejax.rules.attribution import attribute_to_rule

_SEQUENCE = (list, tuple)


def run_rule(
    registry: RuleRegistry,
    primitive: Primitive,
    rule: Callable[..., Any],
    below: Trace | None,
    operands: Sequence[Any],
    params: dict[str, Any],
    paired: bool = False,
) -> Any:
    """Return `rule(*operands, **params)` with the trace `below` on top, which interprets what the rule binds.

    What the rule raises gets a note that names the rule.

    Raises:
        TypeError: the rule is `paired`, and gives no pair of results, and their tangents or batching dimensions.
    """
    previous = state.trace
    try:
        state.trace = below  # type: ignore[assignment]
        out = rule(*operands, **params)
    except Exception as error:
        attribute_to_rule(error, primitive, state.source, registry.kind)
        raise
    finally:
        state.trace = previous
    if paired and (type(out) is not tuple or len(out) != 2) and not (isinstance(out, _SEQUENCE) and len(out) == 2):
        _refuse_pair(registry, primitive, out)
    return out


def each_result(
    registry: RuleRegistry, primitive: Primitive, outs: Any, second: Any, types: Sequence[ShapedArray] | None
) -> Iterable[tuple[Any, Any, ShapedArray | None]]:
    """Return what a JVP or vmap rule gave: for each result its tangent or batching dimension, and its promised type.

    Raises:
        TypeError: these are no two lists of the promised length.
    """
    if not isinstance(outs, _SEQUENCE) or not isinstance(second, _SEQUENCE) or len(outs) != len(second):
        _refuse_pair(registry, primitive, (outs, second))
    if types is not None and len(types) != len(outs):
        raise mismatch(registry, primitive, f"{len(outs)} results where its abstract-eval rule promises {len(types)}")
    return zip(outs, second, types or (None,) * len(outs), strict=True)


def mismatch(
    registry: RuleRegistry, primitive: Primitive, problem: str, source: source_info.Source | None = None
) -> TypeError:
    """The error for a rule whose result does not fit, for interpreters to raise.

    Args:
        registry: the kind of rule.
        primitive: whose rule it is.
        problem: the rest of the sentence "its JVP rule gives ...".
        source: the user's line, if that is neither the one that is running nor of the equation that is replayed.
    """
    source = state.source if source is None else source
    platforms = (None, *registry.platforms_of(primitive))
    rule = next(filter(None, (registry.rule_of(primitive, platform) for platform in platforms)), None)
    origin = f"from {rule.provenance}" if rule is not None and rule.derived is None else "derived"
    error = TypeError(
        f"primitive {primitive.name!r}: its {registry.title} ({origin}) gives {problem}"
        f"{source_info.needed('; it was needed at', source)}. To check the rule: corejax verify {primitive.name}"
    )
    mark(error, primitive, registry.kind)
    return error


def shown(x: Any) -> str:
    """Describe a value in a few words, by its type if it is an array."""
    if x is None:
        return "None"
    if isinstance(x, list | tuple):
        return f"a {type(x).__name__} of {len(x)}"
    try:
        return f"{type(x).__name__} {get_aval(x).str_short()}"
    except TypeError:
        text = repr(x)
        return f"{text if len(text) < 40 else text[:37] + '...'} of type {type(x).__name__}"


def fits(x: Any, aval: ShapedArray) -> bool:
    """Return whether a value has the shape and dtype of `aval`."""
    try:
        found = get_aval(x)
    except TypeError:
        return False
    return found.shape == aval.shape and found.dtype == aval.dtype


def _refuse_pair(registry: RuleRegistry, primitive: Primitive, result: Any) -> NoReturn:
    """Raise the error for a JVP or vmap rule that does not return a pair, or a pair of lists.

    Raises:
        TypeError: always.
    """
    second, what = {jvp_rules: ("tangent_out", "tangents"), vmap_rules: ("dim_out", "batching dimensions")}[registry]
    pair = f"a pair (out, {second})" + (" of lists" if primitive.multiple_results else "")
    if not isinstance(result, list | tuple) or len(result) != 2:
        raise mismatch(registry, primitive, f"{shown(result)} where it has to give {pair}")
    out, other = result
    if isinstance(out, list | tuple) and isinstance(other, list | tuple):
        raise mismatch(registry, primitive, f"{len(out)} results and {len(other)} {what}")
    raise mismatch(registry, primitive, f"a pair of {shown(out)} and {shown(other)} where it has to give {pair}")


def check_results(registry: RuleRegistry, primitive: Primitive, outs: Any, types: Sequence[ShapedArray]) -> list[Any]:
    """The results of a rule that gives a list of them, which have to be of these types.

    Raises:
        TypeError: it is no list or tuple of that length, or a result is of another shape or dtype.
    """
    if not isinstance(outs, _SEQUENCE) or len(outs) != len(types):
        raise mismatch(registry, primitive, f"{shown(outs)} where it has to give a list of {len(types)} results")
    for out, aval in zip(outs, types, strict=True):
        check_result(registry, primitive, out, aval)
    return list(outs)


def check_result(registry: RuleRegistry, primitive: Primitive, out: Any, aval: ShapedArray, how: str = "") -> None:
    """Check that a result of a rule has the shape and dtype of `aval`; `how` says more of the result in the message.

    Raises:
        TypeError: it has not.
    """
    if not fits(out, aval):
        what = shown(getattr(out, "val", out))
        problem = f"{what}{how} where its abstract-eval rule promises {aval.str_short()} for these operands"
        raise mismatch(registry, primitive, problem)


def check_tangent(primitive: Primitive, out: Any, tangent: Any) -> None:
    """Check that a JVP rule's tangent has its result's shape and dtype.

    Raises:
        TypeError: it has not.
    """
    try:
        aval = get_aval(out)
    except TypeError:
        raise mismatch(jvp_rules, primitive, f"{shown(out)} for the result, which has to be an array") from None
    if not is_inexact(aval.dtype):
        problem = (
            f"{shown(tangent)} as tangent of a result of type {aval.str_short()}, which has none: its tangent is None"
        )
        raise mismatch(jvp_rules, primitive, problem)
    if not fits(tangent, aval):
        problem = f"{shown(tangent)} as tangent of a result of type {aval.str_short()}, where it has to be of this type"
        raise mismatch(jvp_rules, primitive, problem)


def refuse_batch(primitive: Primitive, axis_size: int, out: Any, dim: Any) -> NoReturn:
    """Raise the error for a vmap rule whose result has no axis of the batch's length at the position that it names.

    Raises:
        TypeError: always.
    """
    problem = f"{shown(out)}, batched along axis {dim!r}, where an array with an axis of length {axis_size} is needed"
    raise mismatch(vmap_rules, primitive, f"{problem}; axes count from 0")


def check_cotangents(primitive: Primitive, cts_in: Any, avals: Sequence[ShapedArray | None]) -> None:
    """Check that a transpose rule gives a cotangent of type `avals[i]`, or None, for each linear operand.

    Raises:
        TypeError: it does not.
    """
    if not isinstance(cts_in, list | tuple) or len(cts_in) != len(avals):
        wanted = f"[ct or None for each of {len(avals)} operands]"
        raise mismatch(transpose_rules, primitive, f"{shown(cts_in)} where it has to give {wanted}")
    for i, (ct, aval) in enumerate(zip(cts_in, avals, strict=True)):
        if ct is not None and aval is not None and not fits(ct, aval):
            problem = f"{shown(ct)} as cotangent of operand {i}, which is of type {aval.str_short()}"
            raise mismatch(transpose_rules, primitive, problem)
