"""StableHLO of a primitive that has only an impl: the compiled program calls it back on the host.

The translation is a custom call to a target of jaxlib's that calls one of the executable's Python functions. With
ordered effects it takes and gives a token besides (`regions`). What the function raises would reach the caller as text
only, so it is kept here meanwhile and found again by a number in the text: the caller gets the very exception.
"""

from __future__ import annotations

import itertools
import re
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    Derivation,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    bottom_trace,
    dtypes,
    host_value,
    impl_rules,
    set_current_trace,
    xla_translations,
)
from corejax.extend.messages import HostCallbackError, clears_cache, exact
from corejax.extend.transforms import replaying
from corejax_xla_backend._callbacks import Failures
from corejax_xla_backend._callbacks import state as callbacks
from corejax_xla_backend._lowering.context import TranslationContext
from corejax_xla_backend._lowering.regions import TOKEN
from corejax_xla_backend._lowering.types import Value

_TARGETS = {"cpu": "xla_ffi_python_cpu_callback", "cuda": "xla_ffi_python_gpu_callback"}
# Each device of a program over several calls these, with its parts of the operands; they have no results.
_PARTITIONED = {platform: target.replace("_python_", "_partitioned_python_") for platform, target in _TARGETS.items()}

_failures: OrderedDict[int, BaseException] = OrderedDict()
_FAILURES_LIMIT = 16  # several callbacks of a program may fail, of which one is reported
clears_cache(_failures.clear)
_numbers = itertools.count(1)


def from_impl(primitive: Primitive) -> Any:
    """The translation rule that calls a primitive's impl rule back; None where it has none, or runs over devices."""
    if "collective" in primitive.tags:
        return None
    if not (impl_rules.is_written(primitive) and abstract_eval_rules.is_written(primitive)):
        return None

    ordered = any(effect.startswith("ordered:") for effect in primitive.effects)

    def rule(
        ctx: TranslationContext, in_avals: Sequence[ShapedArray], in_vals: Sequence[Value], /, **params: Any
    ) -> Any:
        avals = tuple(in_avals)
        avals_out = primitive.abstract(avals, params)
        source = ctx.source
        # Not by shapes: each device may call it with its part.
        types = tuple([(aval.dtype, aval.weak_type) for aval in avals])
        given = [(name, type(value), exact(value)) for name, value in params.items()]
        key = (primitive, types, *given, source and source[:2])
        in_parts = params.get("partitioned", False) and not ordered
        failures = ctx.module.failures
        index = ctx.module.callback(key, lambda: _callback(primitive, avals, params, source, failures))
        targets = _PARTITIONED if in_parts else _TARGETS
        outs = ctx.custom_call(
            targets.get(
                ctx.platform, targets["cpu"]
            ),  # a platform that is only lowered for: `export` refuses callbacks
            *in_vals,
            *([ctx.token] if ordered else []),
            out=[*avals_out, *([TOKEN] if ordered else [])],
            attributes={"index": np.uint64(index)},
            has_side_effect=bool(primitive.effects),
            calls_python=not in_parts,
        )
        if ordered:
            ctx.token = outs.pop()
        return outs if primitive.multiple_results else outs[0]

    return rule


def _callback(
    primitive: Primitive,
    avals: tuple[ShapedArray, ...],
    params: dict[str, Any],
    source: Any,
    failures: Failures | None,
) -> Callable[..., tuple[Any, ...]]:
    """The function that the program calls, on any thread: evaluates the primitive as an eager call does.

    What the impl raises has the user's line `source` in its note, where the equation was traced. It is kept in
    `failures` where the program is to go on.
    """
    evaluation = bottom_trace()

    def callback(*operands: Any) -> tuple[Any, ...]:
        outside = callbacks.running
        values, tokens = operands[: len(avals)], operands[len(avals) :]
        try:
            callbacks.running = True
            # Copies: the program's memory is not the impl's to keep.
            arrays = [
                Array(np.array(x, aval.dtype), aval if x.shape == aval.shape else aval.update(shape=x.shape))
                for x, aval in zip(values, avals, strict=True)
            ]
            with replaying(source), set_current_trace(evaluation):
                outs = evaluation.process_primitive(primitive, arrays, params)
            return (*map(host_value, outs), *tokens)
        except BaseException as error:
            go_on_with = None if failures is None else failures.keep(error)
            if go_on_with is None:
                raise _kept(primitive, error) from None
            here = tuple([aval.update(shape=x.shape) for x, aval in zip(values, avals, strict=True)])
            return (*(_filled(out, go_on_with) for out in primitive.abstract(here, params)), *tokens)
        finally:
            callbacks.running = outside

    return callback


def _filled(aval: ShapedArray, with_: str) -> np.ndarray[Any, Any]:
    """An array of the type whose elements are "zeros", or the "largest" or "least" of its dtype."""
    shape, dtype = aval.shape, aval.dtype
    if with_ == "zeros" or dtypes.is_bool(dtype):
        return np.full(shape, with_ == "largest", dtype)
    if dtypes.is_integer(dtype):
        bounds = dtypes.iinfo(dtype)
        return np.full(shape, bounds.max if with_ == "largest" else bounds.min, dtype)
    return np.full(shape, np.inf if with_ == "largest" else -np.inf).astype(dtype)


def _kept(primitive: Primitive, error: BaseException) -> HostCallbackError:
    """The error to give to the program in place of `error`, which is found again by the number in its text."""
    number = next(_numbers)
    _failures[number] = error
    while len(_failures) > _FAILURES_LIMIT:
        _failures.popitem(last=False)
    what = traceback.format_exception_only(error)[0].strip()
    return HostCallbackError(
        f"the impl rule of primitive {primitive.name!r}, called back on the host by a compiled program, failed: "
        f"{what} [callback failure {number}]"
    )


def original_failure(error: Exception) -> BaseException:
    """What to raise for an error of a program that calls back: what the impl raised, if that is the reason.

    An interrupt may arrive when the callback has just been entered, before it can keep what is raised.
    """
    found = re.search(r"(the impl rule of primitive .*) \[callback failure (\d+)\]", str(error), re.DOTALL)
    if found is None:
        entering = re.search(
            r"error calling callback: Traceback .*\nKeyboardInterrupt[^\n]*\s*$", str(error), re.DOTALL
        )
        return error if entering is None else KeyboardInterrupt()
    failure = _failures.pop(int(found[2]), None)
    return HostCallbackError(found[1]) if failure is None else failure


xla_translations.derivations.append(
    Derivation(
        "host callback",
        from_impl,
        needs="an impl and an abstract-eval rule",
        slow="compiled programs call its impl rule back on the host",
    )
)
