"""The setting `debug_key_reuse`: what runs is checked call by call, and what is traced program by program."""

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

_known: dict[int, tuple[Any, Keys]] = {}  # id -> a weak reference, and the keys of the array
clears_cache(_known.clear)


def keys_of(array: Array) -> Keys:
    """The keys of an array; new ones, if it was not met before."""
    found = _known.get(id(array))
    if found is not None and found[0]() is array:
        return found[1]
    return _remember(array, fresh(array.shape))


def _remember(array: Array, keys: Keys) -> Keys:
    where = id(array)
    _known[where] = (weakref.ref(array, lambda _: _known.pop(where, None)), keys)
    return keys


def _call(
    primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
) -> Callable[[Sequence[Any] | None], None] | None:
    """Check one application, and note what it uses once it has run."""
    given = [keys_of(x) if isinstance(x, Array) and is_key_dtype(x.dtype) else None for x in args]
    if not any(k is not None for k in given) and not any(map(with_keys, subjaxprs(params))):
        return None
    ledger = Ledger()
    try:
        outs = _applied(ledger, primitive, args, params, given)
    except BaseException:
        ledger.take_back()
        raise

    def finish(results: Sequence[Any] | None) -> None:
        if results is None:
            ledger.take_back()
            return
        for result, keys in zip(results, outs, strict=True):
            if keys is not None and all(result is not x for x in args):
                _remember(result, keys)

    return finish


def _applied(
    ledger: Ledger, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], given: list[Keys | None]
) -> Sequence[Keys | None]:
    """The keys of the results: of an equation by itself, whose operands are known."""
    avals = tuple(map(get_aval, args))
    operands, results = map(Var, avals), map(Var, primitive.abstract(avals, params))
    eqn = JaxprEqn(primitive, list(operands), list(results), params, capture_source())
    walk = Walk(ledger, keys_of)
    if next(subjaxprs(params), None) is not None:
        name = params.get("name")
        called = f"{primitive.name} of {name!r}" if isinstance(name, str) else primitive.name
        walk.where = f" ({called}, at {describe_source(eqn.source_info)})"
    return walk.equation(eqn, given, dict(zip(eqn.invars, args, strict=True)), {})


def _program(jaxpr: Jaxpr) -> None:
    if with_keys(jaxpr):
        check_key_reuse_jaxpr(jaxpr)


evaluation_checks.register("debug_key_reuse", EvaluationCheck(_call, _program))
