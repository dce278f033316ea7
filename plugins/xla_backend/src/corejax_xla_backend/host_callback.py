"""StableHLO of a primitive that has only an impl: the compiled program calls it back on the host.

The translation is a custom call to a target of jaxlib's that calls one of the executable's Python functions. What
that raises reaches the caller as text only, so it is kept here meanwhile and found again by a number in the text.
"""

from __future__ import annotations

import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    Derivation,
    HostCallbackError,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    bottom_trace,
    clears_cache,
    impl_rules,
    set_current_trace,
    xla_translations,
)
from corejax_xla_backend.stablehlo import TranslationContext, Value

_TARGETS = {"cpu": "xla_ffi_python_cpu_callback", "cuda": "xla_ffi_python_gpu_callback"}

_failures: OrderedDict[int, HostCallbackError] = OrderedDict()
_FAILURES_LIMIT = 16  # several callbacks of a program may fail, of which one is reported
clears_cache(_failures.clear)
_numbers = itertools.count(1)


def _from_impl(primitive: Primitive) -> Callable[..., Any] | None:
    if any(effect.startswith("ordered:") for effect in primitive.effects) or "collective" in primitive.tags:
        return None
    if not (impl_rules.is_written(primitive) and abstract_eval_rules.is_written(primitive)):
        return None

    def rule(ctx: TranslationContext, in_avals: Sequence[ShapedArray], in_vals: Sequence[Value], **params: Any) -> Any:
        avals = tuple(in_avals)
        avals_out = primitive.abstract(avals, params)
        key = (primitive, avals, tuple(params.items()))
        index = ctx.module.callback(key, lambda: _callback(primitive, avals, avals_out, params))
        outs = ctx.custom_call(
            _TARGETS[ctx.platform],
            *in_vals,
            out=list(avals_out),
            attributes={"index": np.uint64(index)},
            has_side_effect=bool(primitive.effects),
        )
        return outs if primitive.multiple_results else outs[0]

    return rule


def _callback(
    primitive: Primitive,
    avals: tuple[ShapedArray, ...],
    avals_out: tuple[ShapedArray, ...],
    params: dict[str, Any],
) -> Callable[..., tuple[Any, ...]]:
    """The function that the program calls, on any thread: evaluates the primitive as an eager call does."""
    evaluation = bottom_trace()

    def callback(*operands: Any) -> tuple[Any, ...]:
        try:
            # Copies: the program's memory is not the impl's to keep.
            arrays = [Array(np.array(x, aval.dtype), aval) for x, aval in zip(operands, avals, strict=True)]
            with set_current_trace(evaluation):
                outs = evaluation.process_primitive(primitive, arrays, params)
            return tuple(np.asarray(out) for out in outs)
        except BaseException as error:
            raise _kept(primitive, error) from None

    return callback


def _kept(primitive: Primitive, error: BaseException) -> HostCallbackError:
    number = next(_numbers)
    text = (
        f"the impl rule of primitive {primitive.name!r}, called back on the host by a compiled program, failed: "
        f"{type(error).__name__}: {error}"
    )
    found = HostCallbackError(text)
    found.__cause__ = error
    _failures[number] = found
    while len(_failures) > _FAILURES_LIMIT:
        _failures.popitem(last=False)
    return HostCallbackError(f"{text} [callback failure {number}]")


def original_failure(error: Exception) -> BaseException:
    """What to raise for an error of a program that calls back: what the callback raised, if that is the reason."""
    found = re.search(r"\[callback failure (\d+)\]", str(error))
    failure = None if found is None else _failures.pop(int(found[1]), None)
    if failure is None:
        return error
    cause = failure.__cause__
    return failure if cause is None or isinstance(cause, Exception) else cause  # KeyboardInterrupt stays one


xla_translations.derivations.append(
    Derivation(
        "host callback",
        _from_impl,
        needs="an impl and an abstract-eval rule, and no ordered effects",
        slow="compiled programs call its impl rule back on the host",
    )
)
