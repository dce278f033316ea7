"""Eager evaluation of a primitive that has only an abstract-eval and a translation rule: compiled by itself.

This module is imported with the impl rules, so it does without jaxlib until something is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import (
    Array,
    BackendError,
    ClosedJaxpr,
    Derivation,
    Primitive,
    abstract_eval_rules,
    backends,
    clears_cache,
    impl_rules,
    stage_closed,
    xla_translations,
)
from corejax_xla_backend._callbacks import state as callbacks
from corejax_xla_backend._programs import compiled, run

_LIMIT = 1024  # programs of one primitive
_programs: dict[Primitive, dict[Any, ClosedJaxpr]] = {}  # by type and parameters


@clears_cache
def _clear_programs() -> None:
    for programs in list(_programs.values()):
        programs.clear()


def _from_translation(primitive: Primitive) -> Callable[..., Any] | None:
    if primitive.decomposition is not None:
        return None
    if not (abstract_eval_rules.is_written(primitive) and xla_translations.is_written(primitive)):
        return None
    programs: dict[Any, ClosedJaxpr] = {}
    _programs[primitive] = programs

    def impl(*arrays: Array, **params: Any) -> Any:
        if callbacks.running and impl_rules.is_written(primitive):
            raise BackendError(
                f"primitive {primitive.name!r}: a compiled program waits for its impl rule, which it calls back"
            )
        key = (tuple(x.aval for x in arrays), tuple(params.items()))
        program = programs.get(key)
        if program is None:
            if len(programs) >= _LIMIT:
                programs.clear()
            program = programs[key] = _program(primitive, key[0], params)
        backend, platform = backends.find("xla")
        outs = run(compiled(program, primitive.name, backend, platform), backend, arrays, program.out_avals)
        if backend.devices(platform)[0].platform == "cpu":
            for out in outs:
                out.block_until_ready()  # a process that is forked meanwhile could not
        return outs if primitive.multiple_results else outs[0]

    return impl


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
