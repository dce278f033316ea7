"""The derived impl rule of primitives that have only an abstract-eval and a translation rule: compile it by itself.

Each primitive has one dispatcher for each target and set of parameters, and the dispatcher caches a program for each
set of operand types. This module is imported with the impl rules, so it imports jaxlib only when something is compiled.
"""

from __future__ import annotations

import functools
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
from corejax.extend.devices import RepeatableCall, Target, checks_values
from corejax.extend.messages import clears_cache, exact
from corejax_xla_backend._callbacks import state as callbacks
from corejax_xla_backend._live import LiveSet
from corejax_xla_backend._parts import stored_arrays
from corejax_xla_backend._programs import dispatcher_of, interpreting, run_where_they_are

_LIMIT = 1024  # dispatchers of one primitive, and programs of one dispatcher


class Kept(dict[Any, Any]):
    """A cache of dispatchers by target and parameters; each dispatcher has its programs by types."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]  # dicts have no hash

    def __init__(self) -> None:
        super().__init__()
        _all_kept.add(self)


_all_kept: LiveSet[Kept] = LiveSet()
_of_primitives: dict[Primitive, Kept] = {}


@clears_cache
def _clear_programs() -> None:
    for kept in _all_kept:
        kept.clear()


def _from_translation(primitive: Primitive) -> Callable[..., Any] | None:
    """Return the impl rule that compiles a primitive by itself; None if it has a decomposition or lacks a rule."""
    if primitive.decomposition is not None:
        return None
    if not (abstract_eval_rules.is_written(primitive) and xla_translations.is_written(primitive)):
        return None

    def impl(*arrays: Array, **params: Any) -> Any:
        if (callbacks.running or interpreting()) and impl_rules.is_written(primitive):
            why = "its caller is evaluated eagerly while the compiler works"
            if callbacks.running:
                why = "a compiled program calls back its impl rule and waits for it"
            raise BackendError(f"primitive {primitive.name!r} is not compiled by itself: {why}")
        outs = run_alone(primitive, arrays, params, None)
        return outs if primitive.multiple_results else outs[0]

    return impl


def run_alone(primitive: Primitive, arrays: Sequence[Array], params: Mapping[str, Any], kept: Kept | None) -> Any:
    """Compile and run a primitive by itself on XLA's default device; `kept` as in `dispatch`."""
    target = backends.find("xla")
    return _wait_on_cpu(dispatch(primitive, arrays, params, target, kept), target)


def run_program(program: ClosedJaxpr, arrays: Sequence[Array], name: str) -> list[Array] | None:
    """Compile and run a program of several operations; return None while nothing may be compiled."""
    if config.disable_jit or callbacks.running or interpreting() or checks_values():
        return None
    target = backends.find("xla")
    return _wait_on_cpu(dispatcher_of(program, name, target)(*arrays), target)


def _wait_on_cpu(outs: list[Array], target: Target) -> list[Array]:
    """Wait for results on CPUs, because a forked process could not wait for them."""
    if target.backend.default_device(target.platform).platform == "cpu":
        for out in stored_arrays(outs):
            out.block_until_ready()
    return outs


def dispatch(
    primitive: Primitive, arrays: Sequence[Array], params: Mapping[str, Any], target: Target, kept: Kept | None = None
) -> list[Array]:
    """Evaluate a primitive, compiled for its operands' devices, by a dispatcher that repeats calls.

    `kept` caches the dispatchers, so that they live as long as a parameter that owns it; by default the primitive does.

    Raises:
        ValueError: the operands are on different devices.
    """
    if kept is None:
        kept = _of_primitives.get(primitive)
        if kept is None:
            kept = _of_primitives[primitive] = Kept()
    try:
        key = (target, *((name, type(value), exact(value)) for name, value in params.items()))
        call = kept.get(key)
    except TypeError:  # a parameter is not hashable
        return _miss(primitive, params, target, {}, *arrays)[0]
    if call is None:
        if len(kept) >= _LIMIT:
            kept.clear()
        miss = functools.partial(_miss, primitive, params, target, {})
        call = kept[key] = target.backend.dispatcher(primitive.name, miss)
    return call(*arrays)  # type: ignore[no-any-return]  # a list, by `_miss`


def _miss(
    primitive: Primitive, params: Mapping[str, Any], target: Target, programs: dict[Any, ClosedJaxpr], *arrays: Array
) -> tuple[list[Array], RepeatableCall]:
    """Evaluate a primitive by its program for the operands' types, which is made at the first call with them."""
    avals = tuple(x.aval for x in arrays)
    program = programs.get(avals)
    if program is None:
        if len(programs) >= _LIMIT:
            programs.clear()
        program = programs[avals] = _program(primitive, avals, dict(params))
    outs, executable = run_where_they_are(program, arrays, primitive.name, target)
    return outs, RepeatableCall(executable, [], arrays, {}, outs)


def _program(primitive: Primitive, avals: Any, params: dict[str, Any]) -> ClosedJaxpr:
    """Return the program of one application of a primitive."""

    def apply(*args: Any) -> list[Any]:
        out = primitive.bind(*args, **params)
        return list(out) if primitive.multiple_results else [out]

    return stage_closed(apply, avals)


impl_rules.derivations.append(
    Derivation(
        "compilation",
        _from_translation,
        needs="an XLA translation rule and an abstract-eval rule",
        flags={"device": True},
    )
)
