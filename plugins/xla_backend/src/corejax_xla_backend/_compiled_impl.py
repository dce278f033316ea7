"""Eager evaluation of a primitive that has only an abstract-eval and a translation rule: compiled by itself.

This module is imported with the impl rules, so it does without jaxlib until something is compiled.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.extend import (
    Array,
    BackendError,
    ClosedJaxpr,
    Derivation,
    Primitive,
    abstract_eval_rules,
    backends,
    config,
    impl_rules,
    stage_closed,
    xla_translations,
)
from corejax.extend.devices import Executable, RepeatableCall, Target, checks_values
from corejax.extend.messages import clears_cache
from corejax_xla_backend._callbacks import state as callbacks
from corejax_xla_backend._params import told_apart
from corejax_xla_backend._programs import repeated, run_where_they_are

_LIMIT = 1024  # programs of one primitive


class Kept:
    """Programs by type and parameters, and dispatchers by where they run and parameters."""

    def __init__(self) -> None:
        self.programs: dict[Any, ClosedJaxpr] = {}
        self.dispatchers: dict[Any, Any] = {}
        _all_kept.add(self)


_all_kept: weakref.WeakSet[Kept] = weakref.WeakSet()
_of_primitives: dict[Primitive, Kept] = {}
_whole: weakref.WeakKeyDictionary[ClosedJaxpr, dict[Target, Any]] = weakref.WeakKeyDictionary()  # dispatchers


@clears_cache
def _clear_programs() -> None:
    for kept in list(_all_kept):
        kept.programs.clear()
        kept.dispatchers.clear()
    _whole.clear()


def _from_translation(primitive: Primitive) -> Callable[..., Any] | None:
    if primitive.decomposition is not None:
        return None
    if not (abstract_eval_rules.is_written(primitive) and xla_translations.is_written(primitive)):
        return None

    def impl(*arrays: Array, **params: Any) -> Any:
        if callbacks.running and impl_rules.is_written(primitive):
            raise BackendError(
                f"primitive {primitive.name!r}: a compiled program waits for its impl rule, which it calls back"
            )
        outs = run_alone(primitive, arrays, params, None)
        return outs if primitive.multiple_results else outs[0]

    return impl


def run_alone(primitive: Primitive, arrays: Sequence[Array], params: Mapping[str, Any], kept: Kept | None) -> Any:
    """Results of a primitive by itself, where NumPy's are to be; `kept` as in `dispatch`."""
    target = backends.find("xla")
    return _waited_for(dispatch(primitive, arrays, params, target, kept), target)


def run_program(program: ClosedJaxpr, arrays: Sequence[Array], name: str) -> list[Array] | None:
    """Compile and run a program of several operations; None while programs are not to be compiled."""
    if config.disable_jit or callbacks.running or checks_values():
        return None
    target = backends.find("xla")
    calls = _whole.get(program)
    if calls is None:
        calls = _whole[program] = {}
    call = calls.get(target)
    if call is None:
        call = calls[target] = repeated(program, name, target)
    return _waited_for(call(*arrays), target)


def _waited_for(outs: list[Array], target: Target) -> list[Array]:
    if target.backend.default_device(target.platform).platform == "cpu":
        for out in outs:
            out.block_until_ready()  # a process that is forked meanwhile could not
    return outs


def dispatch(
    primitive: Primitive, arrays: Sequence[Array], params: Mapping[str, Any], target: Target, kept: Kept | None = None
) -> list[Array]:
    """Results of a primitive by itself, compiled for where its operands are, by a dispatcher that repeats calls.

    Args:
        primitive: the primitive.
        arrays, params: its operands and parameters.
        target: where it runs.
        kept: of a parameter that is an object, with which its programs go; by default they are the primitive's.

    Raises:
        ValueError: the operands are on different devices.
    """
    if kept is None:
        kept = _of_primitives.get(primitive)
        if kept is None:
            kept = _of_primitives[primitive] = Kept()
    calls, programs = kept.dispatchers, kept.programs
    try:
        key = (target, *told_apart(params))
        call = calls.get(key)
    except TypeError:  # a parameter that is not hashable
        return _evaluate(primitive, arrays, params, target, programs)[0]
    if call is None:
        if len(calls) >= _LIMIT:
            calls.clear()

        def miss(*given: Array) -> tuple[list[Array], RepeatableCall]:
            outs, executable = _evaluate(primitive, given, params, target, programs)
            return outs, RepeatableCall(executable, [], given, {}, outs)

        call = calls[key] = target.backend.dispatcher(primitive.name, miss)
    return call(*arrays)  # type: ignore[no-any-return]


def _evaluate(
    primitive: Primitive,
    arrays: Sequence[Array],
    params: Mapping[str, Any],
    target: Target,
    programs: dict[Any, ClosedJaxpr],
) -> tuple[list[Array], Executable]:
    avals = tuple(x.aval for x in arrays)
    try:
        key = (avals, *told_apart(params))
        program = programs.get(key)
    except TypeError:  # a parameter that is not hashable
        key, program = None, None
    if program is None:
        if len(programs) >= _LIMIT:
            programs.clear()
        program = _program(primitive, avals, dict(params))
        if key is not None:
            programs[key] = program
    return run_where_they_are(program, arrays, primitive.name, target)


def _program(primitive: Primitive, avals: Any, params: dict[str, Any]) -> ClosedJaxpr:
    def alone(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **params)
        return list(out) if primitive.multiple_results else [out]

    return stage_closed(alone, avals)


impl_rules.derivations.append(
    Derivation(
        "compilation",
        _from_translation,
        needs="an XLA translation rule and an abstract-eval rule",
        flags={"device": True},
    )
)
