"""Abstract evaluation: infer the types of a primitive's results by its abstract-eval rule, memoised.

The memo of a primitive maps (types of operands, parameters) to types of results. Invariant: it is empty after a change
of the primitive's rule, and it never keeps user functions or programs alive. `Primitive.abstract` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corejax import dtypes
from corejax.base.seams import Signal
from corejax.base.texts import described, one_line
from corejax.core.avals import Avals, Params, ShapedArray
from corejax.core.primitive import Primitive, infer_types
from corejax.messages import source_info
from corejax.rules import abstract_eval_rules, physical_rules
from corejax.rules.attribution import attribute_to_rule
from corejax.rules.run_rule import mismatch
from corejax.settings.memory_limit import LARGE

_MEMO_LIMIT = 8192  # number of entries at which the memo of a primitive is cleared

types_changed = Signal("abstract-eval rules")


def promised(primitive: Primitive, avals: tuple[ShapedArray, ...], params: Params) -> tuple[ShapedArray, ...] | None:
    """Do as `Primitive.abstract`, but return None if the primitive has no abstract-eval rule, also no derived one."""
    if primitive in abstract_eval_rules.table or abstract_eval_rules.find(primitive) is not None:
        return primitive.abstract(avals, params)
    return None


@infer_types.provide
def _infer_types(primitive: Primitive, avals: tuple[ShapedArray, ...], params: Params) -> tuple[ShapedArray, ...]:
    """Run the abstract-eval rule, check its result, and memoise the types.

    Raises:
        TypeError: the primitive does not support a dtype, the rule's result is wrong, or the rule raises.
    """
    rule = abstract_eval_rules.lookup(primitive)
    if primitive.decomposition is None:
        _refuse_stored(primitive, avals)
    try:
        out = rule(*avals, **params)
    except TypeError as error:
        attribute_to_rule(error, primitive, kind="abstract_eval")
        raise
    except OverflowError as error:  # the number of bytes of a result exceeds 64-bit integers
        raise OverflowError(f"primitive {primitive.name!r} at {source_info.user_line()}: {error}") from None
    several = primitive.multiple_results and isinstance(out, Iterable)
    outs = tuple(out) if several else (out,)
    if several is not primitive.multiple_results or not all(isinstance(aval, ShapedArray) for aval in outs):
        raise _no_types(primitive, out)
    stored = [aval for aval in outs if aval.dtype.names]
    if stored and primitive.decomposition is None and not any(aval.dtype.names for aval in avals):
        _refuse_stored(primitive, stored)
    refinements = [aval.refinement for aval in avals if aval.refinement is not None]
    if refinements:
        outs = refinements[0].of_results(primitive, avals, outs, params)
    # Large results are not memoised, so that the evaluator checks their size at every call.
    is_memoised = "higher_order" not in primitive.tags and not any(aval.nbytes > LARGE for aval in outs)
    if is_memoised and not _holds_function(params.values()):
        if len(primitive._memo) >= _MEMO_LIMIT:
            primitive._memo.clear()
        primitive._memo[(avals, tuple(params.items())) if params else avals] = outs
    return outs


def _holds_function(values: Iterable[object]) -> bool:
    """Whether parameters contain functions or objects compared by identity, which a memo must not keep alive.

    Programs are parameters of higher-order primitives, which are not memoised at all.
    """
    for value in values:
        by_identity = getattr(type(value), "__hash__", None) is object.__hash__
        if by_identity or (callable(value) and not isinstance(value, type)):
            return True
        if isinstance(value, tuple) and _holds_function(value):
            return True
    return False


_TAKING_VALUES = ("higher_order", "value_types")  # tags of primitives that take values of any type


def _refuse_stored(primitive: Primitive, avals: Avals) -> None:
    """Raise TypeError if values of a type are stored in other arrays and the primitive cannot handle them."""
    for i, aval in enumerate(avals):
        if type(aval) is not ShapedArray and primitive.tags.isdisjoint(_TAKING_VALUES):
            raise TypeError(
                f"primitive {primitive.name!r} takes arrays, and operand {i} is of type {aval.str_short()}: use an "
                "operation of this type, or the arrays that store the value (corejax.lax.unpack)"
            )
        if aval.dtype.names is None or primitive in physical_rules:
            continue
        if primitive.tags.isdisjoint((*_TAKING_VALUES, "structural")):
            raise dtypes.no_numbers(aval.dtype, f"primitive {primitive.name!r}")


def _no_types(primitive: Primitive, out: Any) -> TypeError:
    """Return the error for an abstract-eval rule that does not return types."""
    text = f"a {type(out).__name__} of {len(out)}" if isinstance(out, list | tuple) else ""
    wrong = [x for x in (out if text else [out]) if not isinstance(x, ShapedArray) or x is out][:1]
    for x in wrong:
        kind = "None" if x is None else f"{one_line(described(x))} of type {type(x).__name__}"
        text = f"{text}, one of them {kind}," if text else kind
    wanted = "a list of types (ShapedArray), one for each result" if primitive.multiple_results else "one ShapedArray"
    return mismatch(abstract_eval_rules, primitive, f"{text} instead of {wanted}")


@abstract_eval_rules.changed.connect
def _forget_types(primitive: Primitive) -> None:
    primitive._memo.clear()
    types_changed.send()
