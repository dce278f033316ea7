"""Run one rule of a primitive and check its results against the types that abstract evaluation inferred.

Errors name the primitive, the rule and its author, the result and the expected type. Types are interned, so the checks
of correct results compare objects by identity; text is formatted only for errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from corejax.core.avals import Avals, Operands, Params, ShapedArray, get_aval
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace, state
from corejax.messages import source_info
from corejax.messages.marks import mark
from corejax.messages.source_info import Source
from corejax.rules import RuleFn, RuleRegistry, jvp_rules, transpose_rules, vmap_rules
from corejax.rules.attribution import attribute_to_rule

_SEQUENCE = (list, tuple)


def run_rule(
    registry: RuleRegistry,
    primitive: Primitive,
    rule: RuleFn,
    below: Trace | None,
    operands: Operands,
    params: Params,
    paired: bool = False,
) -> Any:
    """Return `rule(*operands, **params)` with the trace `below` on top; an exception gets a note that names the rule.

    Raises:
        TypeError: the rule is `paired`, but does not return a pair of results and their tangents or batch dimensions.
    """
    previous = state.trace
    try:
        state.trace = below  # type: ignore[assignment]  # None only for a rule that binds nothing
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
    registry: RuleRegistry, primitive: Primitive, outs: object, second: object, types: Avals | None
) -> Iterable[tuple[Any, Any, ShapedArray | None]]:
    """Return each result of a JVP or vmap rule, its tangent or batching dimension, and its inferred type or None.

    Raises:
        TypeError: `outs` and `second` are not two lists of the expected length.
    """
    if not isinstance(outs, _SEQUENCE) or not isinstance(second, _SEQUENCE) or len(outs) != len(second):
        _refuse_pair(registry, primitive, (outs, second))
    if types is not None and len(types) != len(outs):
        raise mismatch(registry, primitive, f"{len(outs)} results, but its abstract-eval rule promises {len(types)}")
    return zip(outs, second, types or (None,) * len(outs), strict=True)


def mismatch(registry: RuleRegistry, primitive: Primitive, problem: str, source: Source | None = None) -> TypeError:
    """Return the error for a rule with a wrong result, for interpreters to raise.

    Args:
        registry: the kind of rule.
        primitive: the primitive of the rule.
        problem: the rest of the sentence "its JVP rule returned ...".
        source: the user's line, if it is neither the running one nor that of the equation that is replayed.
    """
    source = state.source if source is None else source
    platforms = (None, *registry.platforms_of(primitive))
    rule = next(filter(None, (registry.rule_of(primitive, platform) for platform in platforms)), None)
    origin = f"from {rule.provenance}" if rule is not None and rule.derived is None else "derived"
    error = TypeError(
        f"primitive {primitive.name!r}: its {registry.title} ({origin}) returned {problem}"
        f"{source_info.needed('; it was needed at', source)}. To check the rule: corejax verify {primitive.name}"
    )
    mark(error, primitive, registry.kind)
    return error


def shown(x: object) -> str:
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


def fits(x: object, aval: ShapedArray) -> bool:
    """Return whether a value has the shape and dtype of `aval`; of a value type, whether it has this type."""
    try:
        actual = get_aval(x)
    except TypeError:
        return False
    plain = type(actual) is type(aval) is ShapedArray
    return actual is aval or (plain and actual.shape == aval.shape and actual.dtype == aval.dtype)


def _refuse_pair(registry: RuleRegistry, primitive: Primitive, result: object) -> NoReturn:
    """Raise the error for a JVP or vmap rule that does not return a pair, or a pair of lists.

    Raises:
        TypeError: always.
    """
    second, what = {jvp_rules: ("tangent_out", "tangents"), vmap_rules: ("dim_out", "batching dimensions")}[registry]
    pair = f"a pair (out, {second})" + (" of lists" if primitive.multiple_results else "")
    if not isinstance(result, list | tuple) or len(result) != 2:
        raise mismatch(registry, primitive, f"{shown(result)} instead of {pair}")
    out, extra = result
    if isinstance(out, list | tuple) and isinstance(extra, list | tuple):
        raise mismatch(registry, primitive, f"{len(out)} results and {len(extra)} {what}")
    raise mismatch(registry, primitive, f"a pair of {shown(out)} and {shown(extra)} instead of {pair}")


def check_results(registry: RuleRegistry, primitive: Primitive, outs: object, types: Avals) -> list[Any]:
    """Return the results of a rule as a list after checking their number and types.

    Raises:
        TypeError: `outs` is not a list or tuple of that length, or a result has another shape or dtype.
    """
    if not isinstance(outs, _SEQUENCE) or len(outs) != len(types):
        raise mismatch(registry, primitive, f"{shown(outs)} instead of a list of {len(types)} results")
    for out, aval in zip(outs, types, strict=True):
        check_result(registry, primitive, out, aval)
    return list(outs)


def check_result(registry: RuleRegistry, primitive: Primitive, out: object, aval: ShapedArray, how: str = "") -> None:
    """Check that a result of a rule has the shape and dtype of `aval`; `how` describes the result in the message.

    Raises:
        TypeError: the result has another shape or dtype.
    """
    if not fits(out, aval):
        what = shown(getattr(out, "val", out))
        problem = f"{what}{how}, but its abstract-eval rule promises {aval.str_short()} for these operands"
        raise mismatch(registry, primitive, problem)


def check_tangent(primitive: Primitive, out: object, tangent: object) -> None:
    """Check that a tangent that a JVP rule returned has the shape and dtype of its result.

    Raises:
        TypeError: it has another shape or dtype, or results of that dtype have no tangents.
    """
    try:
        aval = get_aval(out)
    except TypeError:
        raise mismatch(jvp_rules, primitive, f"{shown(out)} for the result, which has to be an array") from None
    if not aval.has_tangents:
        problem = (
            f"{shown(tangent)} as tangent of a result of type {aval.str_short()}, which has no tangent: return None"
        )
        raise mismatch(jvp_rules, primitive, problem)
    if not fits(tangent, aval.tangent_type()):
        what = f"{shown(tangent)} as tangent of a result of type {aval.str_short()}"
        problem = f"{what}; it has to be of type {aval.tangent_type().str_short()}"
        raise mismatch(jvp_rules, primitive, problem)


def refuse_batch(primitive: Primitive, axis_size: int, out: object, dim: object) -> NoReturn:
    """Raise the error for a vmap rule with a result that has no axis of length `axis_size` at `dim`.

    Raises:
        TypeError: always.
    """
    problem = f"{shown(out)}, batched along axis {dim!r}, instead of an array with an axis of length {axis_size}"
    raise mismatch(vmap_rules, primitive, f"{problem}; axes count from 0")


def check_cotangents(primitive: Primitive, cts_in: object, avals: Sequence[ShapedArray | None]) -> None:
    """Check that a transpose rule returns, for each operand, None or a cotangent of type `avals[i]`.

    Raises:
        TypeError: it does not.
    """
    if not isinstance(cts_in, list | tuple) or len(cts_in) != len(avals):
        wanted = f"[ct or None for each of {len(avals)} operands]"
        raise mismatch(transpose_rules, primitive, f"{shown(cts_in)} instead of {wanted}")
    for i, (ct, aval) in enumerate(zip(cts_in, avals, strict=True)):
        if ct is not None and aval is not None and not fits(ct, aval):
            problem = f"{shown(ct)} as cotangent of operand {i}, which is of type {aval.str_short()}"
            raise mismatch(transpose_rules, primitive, problem)
