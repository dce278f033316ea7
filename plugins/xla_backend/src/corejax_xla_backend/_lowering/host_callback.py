"""The derived translation of a primitive that has only an impl rule: the compiled program calls Python on the host.

The translation is a custom call to a target of jaxlib that calls one of the executable's Python functions. With
ordered effects the call also takes and returns a token (`regions`). XLA passes on only the text of an exception. So the
exception is stored here under a number, which is part of the text, and the caller gets the original exception.
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
    xla_translations,
)
from corejax.extend.messages import HostCallbackError, clears_cache, exact
from corejax.extend.transforms import replaying
from corejax.extend.types import Packed, ValueType
from corejax_xla_backend._callbacks import Failures
from corejax_xla_backend._callbacks import state as callbacks
from corejax_xla_backend._lowering.context import TranslationContext
from corejax_xla_backend._lowering.regions import TOKEN
from corejax_xla_backend._lowering.types import Value
from corejax_xla_backend._parts import flat_avals, stored_arrays, values_stored_in

_TARGETS = {"cpu": "xla_ffi_python_cpu_callback", "cuda": "xla_ffi_python_gpu_callback"}
# Targets for programs over several devices, without results: each device calls them with its parts of the operands.
_PARTITIONED = {platform: target.replace("_python_", "_partitioned_python_") for platform, target in _TARGETS.items()}

_failures: OrderedDict[int, BaseException] = OrderedDict()
_FAILURES_LIMIT = 16  # several callbacks of a program may fail, and XLA reports only one
clears_cache(_failures.clear)
_numbers = itertools.count(1)


def from_impl(primitive: Primitive) -> Any:
    """Return the translation rule that calls a primitive's impl rule on the host.

    None if the primitive is a collective, or lacks an impl or abstract-eval rule.
    """
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
        # The key has no shapes, because each device may call the function with its part of the operands.
        types = tuple([aval if isinstance(aval, ValueType) else (aval.dtype, aval.weak_type) for aval in avals])
        params_key = [(name, type(value), exact(value)) for name, value in params.items()]
        key = (primitive, types, *params_key, source and source[:2])
        in_parts = params.get("partitioned", False) and not ordered
        failures = ctx.module.failures
        index = ctx.module.callback(key, lambda: _callback(primitive, avals, params, source, failures))
        targets = _PARTITIONED if in_parts else _TARGETS
        # Other platforms can only be lowered for, because `export` refuses callbacks; their target does not matter.
        outs = ctx.custom_call(
            targets.get(ctx.platform, targets["cpu"]),
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
    """Return the function that the program calls, on any thread: it evaluates the primitive as an eager call does.

    An exception of the impl gets a note with `source`, the user's line that traced the equation. If the program must
    continue after a failure (over several devices), `failures` stores the exception.
    """
    evaluation, part_types = bottom_trace(), flat_avals(avals)

    def callback(*operands: Any) -> tuple[Any, ...]:
        outside = callbacks.running
        values, tokens = operands[: len(part_types)], operands[len(part_types) :]
        try:
            callbacks.running = True
            # Copies, because the impl may keep its operands and the program reuses their memory.
            parts = [np.array(x, aval.dtype) for x, aval in zip(values, part_types, strict=True)]
            arrays = _operands(parts, avals)
            with replaying(source):
                outs = evaluation.process_primitive(primitive, arrays, params)
            return (*map(host_value, stored_arrays(outs)), *tokens)
        except BaseException as error:
            fill = None if failures is None else failures.keep(error)
            if fill is None:
                raise _store_failure(primitive, error) from None
            types = primitive.abstract(tuple([x.aval for x in _operands(values, avals)]), params)
            return (*(_filled_array(aval, fill) for aval in flat_avals(types)), *tokens)
        finally:
            callbacks.running = outside

    return callback


def _operands(parts: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return the impl's operands from the NumPy arrays that store them."""
    return list(map(_boxed, values_stored_in(avals, parts), avals))


def _boxed(x: Any, aval: ShapedArray) -> Any:
    """Return an operand of a type; a device's part of an array has another shape."""
    if type(x) is Packed:
        return Packed(x.aval, tuple(map(Array, x.parts, x.aval.parts())))
    return Array(x, aval if x.shape == aval.shape else aval.update(shape=x.shape))


def _filled_array(aval: ShapedArray, fill: str) -> np.ndarray[Any, Any]:
    """Return an array of "zeros", or of the "largest" or "least" elements of its dtype."""
    shape, dtype = aval.shape, aval.dtype
    if fill == "zeros" or dtypes.is_bool(dtype):
        return np.full(shape, fill == "largest", dtype)
    if dtypes.is_integer(dtype):
        bounds = dtypes.iinfo(dtype)
        return np.full(shape, bounds.max if fill == "largest" else bounds.min, dtype)
    return np.full(shape, np.inf if fill == "largest" else -np.inf).astype(dtype)


def _store_failure(primitive: Primitive, error: BaseException) -> HostCallbackError:
    """Store an exception, and return the error for the program, with the number of the exception in its text."""
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
    """Return the exception to raise for a program's error: the impl's own exception if the impl caused the error.

    An interrupt may arrive just after a callback is entered, before it can store the exception; then it is a
    KeyboardInterrupt.
    """
    numbered = re.search(r"(the impl rule of primitive .*) \[callback failure (\d+)\]", str(error), re.DOTALL)
    if numbered is None:
        entering = re.search(
            r"error calling callback: Traceback .*\nKeyboardInterrupt[^\n]*\s*$", str(error), re.DOTALL
        )
        return error if entering is None else KeyboardInterrupt()
    failure = _failures.pop(int(numbered[2]), None)
    return HostCallbackError(numbered[1]) if failure is None else failure


xla_translations.derivations.append(
    Derivation(
        "host callback",
        from_impl,
        needs="an impl and an abstract-eval rule",
        slow="compiled programs call its impl rule back on the host",
    )
)
