"""The rules of primitives that call a Python function, the parameter `callback`.

The parameter `out_types` has the types of the results; a primitive without it has no results.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from corejax.extend import (
    Array,
    Primitive,
    abstract_eval_rules,
    impl_rules,
    jvp_rules,
    nondifferentiable,
    transpose_rules,
    vmap_rules,
    xla_translations,
)
from corejax_xla_backend._vmap_methods import one_by_one
from corejax_xla_backend.callbacks.host_function import HostFunction


def register_call(primitive: Primitive) -> None:
    """Register the rules for evaluation, abstract evaluation and translation."""

    def impl(*arrays: Array, callback: HostFunction, **params: Any) -> list[Any]:
        return callback.run(primitive, arrays, params.get("out_types", ()))

    impl_rules.register(primitive, impl, device=True)
    register_type(primitive)
    xla_translations.register(primitive, by="host callback")


def register_type(primitive: Primitive) -> None:
    """Register the abstract-eval rule, which returns `out_types`."""
    abstract_eval_rules.register(primitive, lambda *avals, **params: params.get("out_types", ()))


def register_one_by_one(primitive: Primitive) -> None:
    """Register a vmap rule that calls the function for each element, in order."""

    def vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        bind = functools.partial(primitive.bind, **params)
        return one_by_one(bind, axis_size, vals, dims, params.get("out_types", ()))

    vmap_rules.register(primitive, vmap)


def register_observer(primitive: Primitive) -> None:
    """Register the derivative rules of a primitive without results: it is called with the primal values."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return primitive.bind(*primals, **params), []

    def transpose(cts: Sequence[Any], *operands: Any, **params: Any) -> list[None]:
        return [None] * len(operands)

    jvp_rules.register(primitive, jvp, symbolic_zeros=True)
    transpose_rules.register(primitive, transpose, symbolic_zeros=True)


def refuse_derivatives(primitive: Primitive, reason: str) -> None:
    """Register rules that raise `NotDifferentiableError` with a reason."""
    jvp_rules.register(primitive, nondifferentiable(reason))
    transpose_rules.register(primitive, nondifferentiable(reason))
