"""The primitives `check`, which raises an error if it has occurred, and `debug_check`, which does nothing by itself.

    check, debug_check : error -> ()

Operands are the leaves of an error. Evaluation of `check` raises the error; its translation raises an exception, as
compiled programs cannot. `checkify` joins both to the error of the program instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    impl_rules,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
    xla_translations,
)
from corejax.extend.messages import not_of_rule
from corejax_checkify.failures import CorejaxRuntimeError
from corejax_checkify.state import ErrorType, exception_of
from corejax_lax_basic import lax

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

check_p = Primitive(
    "check",
    multiple_results=True,
    effects=("check",),
    tags=("structural",),
    doc="Raise an error if it has occurred. Params: error_type.",
)
debug_check_p = Primitive(
    "debug_check",
    multiple_results=True,
    effects=("debug_check",),
    tags=("structural",),
    doc="Report an error if it has occurred, inside checkify; else do nothing. Params: error_type.",
)
EFFECTS = check_p.effects | debug_check_p.effects


def raise_if_failed(error_type: ErrorType, leaves: Sequence[Any]) -> None:
    """Raise CorejaxRuntimeError if the error has occurred."""
    error = exception_of(error_type, leaves)
    if error is not None:
        raise CorejaxRuntimeError(str(error)) from error


@impl_rules.register(check_p)
def check_impl(*leaves: Any, error_type: ErrorType) -> list[Any]:
    """Raise the error if it has occurred."""
    raise_if_failed(error_type, leaves)
    return []


@impl_rules.register(debug_check_p)
def debug_check_impl(*leaves: Any, error_type: ErrorType) -> list[Any]:
    """Do nothing."""
    return []


def check_abstract_eval(*avals: ShapedArray, error_type: ErrorType) -> list[ShapedArray]:
    """Check the types of the leaves; there are no results."""
    wanted = error_type.avals()
    if [(a.shape, a.dtype) for a in avals] != [(a.shape, a.dtype) for a in wanted]:
        got, want = (", ".join(a.str_short() for a in each) for each in (avals, wanted))
        raise TypeError(f"check: the leaves of this error must have types {want}, got {got}")
    return []


def check_transpose(cts: Sequence[Any], *operands: Any, error_type: ErrorType) -> list[None]:
    """Return no cotangents, as there are no results."""
    return [None] * len(operands)


def _jvp(primitive: Primitive) -> Any:
    def check_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        """Check the primals; there are no tangents."""
        return primitive.bind(*primals, **params), []

    return check_jvp


def _vmap(primitive: Primitive) -> Any:
    def check_vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        """Check the first element that failed; an empty batch has no check."""
        if axis_size:
            primitive.bind(*first_failed(axis_size, vals, dims), **params)
        return [], []

    return check_vmap


def first_failed(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Return the error of the first element of a batch that failed, or of the first element if none did."""
    pred, *rest = (x if d is None else move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True))
    first: Any = 0
    if dims[0] is not None:
        first = lax.argmax(pred, 0)
        pred = lax.reduce_or(pred, (0,))
    chosen = [
        x if d is None else lax.dynamic_index_in_dim(x, first, 0, keepdims=False)
        for x, d in zip(rest, dims[1:], strict=True)
    ]
    return [pred, *chosen]


@xla_translations.register(check_p)
def check_translation(ctx: TranslationContext, in_avals: Any, in_vals: Any, *, error_type: ErrorType) -> list[Any]:
    """Raise ValueError, as compiled programs cannot raise exceptions."""
    places = dict.fromkeys(failure.where or "an unknown line" for failure, _ in error_type.failures)
    error = ValueError(
        f"Cannot compile a checkify.check (at {', '.join(places)}) that is not functionalized: a compiled program "
        "cannot raise exceptions. Transform the function that is jitted, jit(checkify.checkify(f)): it returns the "
        "error beside its result, to raise outside (error.throw()). A debug_check is omitted instead."
    )
    raise not_of_rule(error)


@xla_translations.register(debug_check_p)
def debug_check_translation(
    ctx: TranslationContext, in_avals: Any, in_vals: Any, *, error_type: ErrorType
) -> list[Any]:
    """Translate to nothing."""
    return []


for _primitive in (check_p, debug_check_p):
    abstract_eval_rules.register(_primitive, check_abstract_eval)
    jvp_rules.register(_primitive, _jvp(_primitive), symbolic_zeros=True)
    transpose_rules.register(_primitive, check_transpose, symbolic_zeros=True)
    vmap_rules.register(_primitive, _vmap(_primitive))
