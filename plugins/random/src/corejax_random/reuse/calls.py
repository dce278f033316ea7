"""The setting `debug_key_reuse`: checks of each evaluated primitive, and of each traced program."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import Array, Jaxpr, JaxprEqn, Primitive, Var, get_aval
from corejax.extend.devices import EvaluationCheck, evaluation_checks
from corejax.extend.messages import capture_source, clears_cache, describe_source
from corejax.extend.programs import subjaxprs
from corejax_random.generators.table import is_key_dtype
from corejax_random.reuse.keys import Keys, Ledger, fresh
from corejax_random.reuse.programs import Walk, check_key_reuse_jaxpr, with_keys

_known: dict[int, tuple[Any, Keys]] = {}  # id of an array -> a weak reference to it, and its keys
clears_cache(_known.clear)


def keys_of(array: Array) -> Keys:
    """Return the keys of an array, which are new if the array is unknown."""
    entry = _known.get(id(array))
    if entry is not None and entry[0]() is array:
        return entry[1]
    return _remember(array, fresh(array.shape))


def _remember(array: Array, keys: Keys) -> Keys:
    key = id(array)
    _known[key] = (weakref.ref(array, lambda _: _known.pop(key, None)), keys)
    return keys


def _call(
    primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> Callable[[Sequence[Any] | None], None] | None:
    """Check one application before it runs; the returned function records the keys of its results."""
    operands = [keys_of(x) if isinstance(x, Array) and is_key_dtype(x.dtype) else None for x in args]
    if not any(k is not None for k in operands) and not any(map(with_keys, subjaxprs(params))):
        return None
    ledger = Ledger()
    try:
        outs = _apply(ledger, primitive, args, params, operands)
    except BaseException:
        ledger.roll_back()
        raise

    def finish(results: Sequence[Any] | None) -> None:
        if results is None:
            ledger.roll_back()
            return
        for result, keys in zip(results, outs, strict=True):
            if keys is not None and all(result is not x for x in args):
                _remember(result, keys)

    return finish


def _apply(
    ledger: Ledger, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], operands: list[Keys | None]
) -> Sequence[Keys | None]:
    """Return the keys of the results, by a walk over the application as an equation with known operands."""
    avals = tuple(map(get_aval, args))
    invars, outvars = map(Var, avals), map(Var, primitive.abstract(avals, params))
    eqn = JaxprEqn(primitive, list(invars), list(outvars), params, capture_source())
    walk = Walk(ledger, keys_of)
    if next(subjaxprs(params), None) is not None:
        name = params.get("name")
        called = f"{primitive.name} of {name!r}" if isinstance(name, str) else primitive.name
        walk.where = f" ({called}, at {describe_source(eqn.source_info)})"
    return walk.equation(eqn, operands, dict(zip(eqn.invars, args, strict=True)), {})


def _program(jaxpr: Jaxpr) -> None:
    if with_keys(jaxpr):
        check_key_reuse_jaxpr(jaxpr)


evaluation_checks.register("debug_key_reuse", EvaluationCheck(_call, _program))
