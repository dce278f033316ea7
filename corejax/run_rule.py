"""What a rule gave does not fit: errors that name primitive, rule and author, what came and what has to come.

Interpreters look here only after something did not fit; what they check on every call is theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from corejax import source_info
from corejax.avals import ShapedArray, get_aval
from corejax.attribution import mark
from corejax.dtypes import is_inexact
from corejax.rules import RuleRegistry, jvp_rules, transpose_rules, vmap_rules
from corejax.trace import state

if TYPE_CHECKING:
    from corejax.primitive import Primitive


def misfit(
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
    """What came, in a few words: a type where it has one."""
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
    """Whether a value has the shape and dtype of `aval`."""
    try:
        found = get_aval(x)
    except TypeError:
        return False
    return found.shape == aval.shape and found.dtype == aval.dtype


def refuse_pair(registry: RuleRegistry, primitive: Primitive, result: Any) -> NoReturn:
    """What a JVP or vmap rule gave is not the pair, or not the pair of lists, that it has to be.

    Raises:
        TypeError: always.
    """
    second, what = {jvp_rules: ("tangent_out", "tangents"), vmap_rules: ("dim_out", "batching dimensions")}[registry]
    pair = f"a pair (out, {second})" + (" of lists" if primitive.multiple_results else "")
    if not isinstance(result, list | tuple) or len(result) != 2:
        raise misfit(registry, primitive, f"{shown(result)} where it has to give {pair}")
    out, other = result
    if isinstance(out, list | tuple) and isinstance(other, list | tuple):
        raise misfit(registry, primitive, f"{len(out)} results and {len(other)} {what}")
    raise misfit(registry, primitive, f"a pair of {shown(out)} and {shown(other)} where it has to give {pair}")


def refuse_count(registry: RuleRegistry, primitive: Primitive, given: int, wanted: int) -> NoReturn:
    """A rule of a primitive with several results gives more or fewer of them than there are.

    Raises:
        TypeError: always.
    """
    raise misfit(registry, primitive, f"{given} results where its abstract-eval rule promises {wanted}")


def check_result(registry: RuleRegistry, primitive: Primitive, out: Any, aval: ShapedArray, how: str = "") -> None:
    """Check that a rule's result has the shape and dtype that abstract evaluation promises.

    Args:
        registry: the kind of rule.
        primitive: whose rule it is.
        out: the result.
        aval: the promised type.
        how: what more is to be said of the result.

    Raises:
        TypeError: it has not.
    """
    if not fits(out, aval):
        what = shown(getattr(out, "val", out))
        problem = f"{what}{how} where its abstract-eval rule promises {aval.str_short()} for these operands"
        raise misfit(registry, primitive, problem)


def check_tangent(primitive: Primitive, out: Any, tangent: Any) -> None:
    """Check that a JVP rule's tangent has its result's shape and dtype.

    Raises:
        TypeError: it has not.
    """
    try:
        aval = get_aval(out)
    except TypeError:
        raise misfit(jvp_rules, primitive, f"{shown(out)} for the result, which has to be an array") from None
    if not is_inexact(aval.dtype):
        raise misfit(jvp_rules, primitive, f"{shown(tangent)} as tangent of a result of type {aval.str_short()}, which "
                     "has none: its tangent is None")  # fmt: skip
    if not fits(tangent, aval):
        problem = f"{shown(tangent)} as tangent of a result of type {aval.str_short()}, where it has to be of this type"
        raise misfit(jvp_rules, primitive, problem)


def refuse_batch(primitive: Primitive, axis_size: int, out: Any, dim: Any) -> NoReturn:
    """A vmap rule's result has no axis of the batch's length where the rule says.

    Raises:
        TypeError: always.
    """
    problem = f"{shown(out)}, batched along axis {dim!r}, where an array with an axis of length {axis_size} is needed"
    raise misfit(vmap_rules, primitive, f"{problem}; axes count from 0")


def check_cotangents(primitive: Primitive, cts_in: Any, avals: Sequence[ShapedArray | None]) -> None:
    """Check that a transpose rule gives a cotangent or None for each operand, of the linear operands' types.

    Args:
        primitive: the primitive.
        cts_in: what the rule gave.
        avals: the operands' types; None for those that are not linear.

    Raises:
        TypeError: it does not.
    """
    if not isinstance(cts_in, list | tuple) or len(cts_in) != len(avals):
        wanted = f"[ct or None for each of {len(avals)} operands]"
        raise misfit(transpose_rules, primitive, f"{shown(cts_in)} where it has to give {wanted}")
    for i, (ct, aval) in enumerate(zip(cts_in, avals, strict=True)):
        if ct is not None and aval is not None and not fits(ct, aval):
            problem = f"{shown(ct)} as cotangent of operand {i}, which is of type {aval.str_short()}"
            raise misfit(transpose_rules, primitive, problem)
