"""JAX's tables of rules: a rule that a library adds is registered with corejax, in corejax's signature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    RuleRegistry,
    axis_of_rule,
    get_aval,
    is_undef_primal,
    jvp_rules,
    transpose_rules,
    vmap_rules,
)
from corejax_as_jax.primitives import register
from corejax_as_jax.zeros import Zero, add_tangents, instantiate_zeros, none_if_zero, zeros_if_none

Rule = Callable[..., Any]


class RuleTable(dict[Any, Rule]):
    """A table `{primitive: rule}` of JAX.

    Args:
        registry: the registry of corejax in which rules are registered.
        translated: `(primitive, rule)` -> the rule in the registry's signature.
        original: `(primitive, rule)` -> the rule in JAX's signature, for rules that corejax defines.
        flags: further arguments of the registration.
    """

    def __init__(
        self,
        registry: RuleRegistry,
        translated: Callable[[Any, Rule], Rule],
        original: Callable[[Any, Rule], Rule],
        **flags: Any,
    ) -> None:
        super().__init__()
        self.registry, self.translated, self.original, self.flags = registry, translated, original, flags

    def __setitem__(self, primitive: Any, rule: Rule) -> None:
        super().__setitem__(primitive, rule)
        register(self.registry, primitive, self.translated(primitive, rule), **self.flags)

    def __missing__(self, primitive: Any) -> Rule:
        rule = self.registry.find(primitive)
        if rule is None:
            raise KeyError(primitive)
        return self.original(primitive, rule)

    def __contains__(self, primitive: Any) -> bool:
        return super().__contains__(primitive) or self.registry.find(primitive) is not None

    def get(self, primitive: Any, default: Any = None) -> Any:
        """Return the rule of a primitive."""
        try:
            return self[primitive]
        except KeyError:
            return default

    def __hash__(self) -> int:  # type: ignore[override]  # compared by identity, unlike a dict
        return id(self)


# -- derivatives ---------------------------------------------------------------------------------------------------


def _jvp(primitive: Any, rule: Rule) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        avals = [get_aval(x) for x in primals]
        out, tangent = rule(tuple(primals), tuple(zeros_if_none(tangents, avals)), **params)
        if primitive.multiple_results:
            return list(out), [none_if_zero(t) for t in tangent]
        return out, none_if_zero(tangent)

    return jvp


def _jvp_of_jax(primitive: Any, rule: Rule) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out, tangent = rule(list(primals), [none_if_zero(t) for t in tangents], **params)
        if primitive.multiple_results:
            return out, zeros_if_none(tangent, [get_aval(x) for x in out])
        return out, zeros_if_none([tangent], [get_aval(out)])[0]

    return jvp


def _transpose(primitive: Any, rule: Rule) -> Rule:
    def transpose(cts: Any, *args: Any, **params: Any) -> list[Any]:
        given = list(cts) if primitive.multiple_results else [cts]
        if any(ct is None for ct in given):
            avals = tuple(x.aval if is_undef_primal(x) else get_aval(x) for x in args)
            given = zeros_if_none(given, primitive.abstract(avals, params))
        out = rule(given if primitive.multiple_results else given[0], *args, **params)
        return [none_if_zero(x) for x in out]

    return transpose


def _transpose_of_jax(primitive: Any, rule: Rule) -> Rule:
    def transpose(cts: Any, *args: Any, **params: Any) -> list[Any]:
        if primitive.multiple_results:
            return list(rule([none_if_zero(ct) for ct in cts], *args, **params))
        return list(rule(none_if_zero(cts), *args, **params))

    return transpose


primitive_jvps = RuleTable(jvp_rules, _jvp, _jvp_of_jax, symbolic_zeros=True)
primitive_transposes = RuleTable(transpose_rules, _transpose, _transpose_of_jax, symbolic_zeros=True)


def deflinear2(primitive: Any, rule: Rule) -> None:
    """Define a linear primitive by its transpose rule `(ct, *args, **params) -> cts`."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if not all(type(t) is Zero for t in tangents):
            return out, primitive.bind(*map(instantiate_zeros, tangents), **params)
        if primitive.multiple_results:
            return out, [Zero.from_primal_value(x) for x in out]
        return out, Zero.from_primal_value(out)

    def transpose(ct: Any, *args: Any, **params: Any) -> Sequence[Any]:
        return [None] * len(args) if type(ct) is Zero else rule(ct, *args, **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def deflinear(primitive: Any, rule: Rule) -> None:
    """Define a linear primitive by its transpose rule `(ct, **params) -> cts`."""
    deflinear2(primitive, lambda ct, *args, **params: rule(ct, **params))


def defjvp2(primitive: Any, *rules: Rule | None) -> None:
    """Define derivatives by operand: `(tangent, result, *primals, **params) -> tangent`, or None for zero."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        pushed = [
            rule(t, out, *primals, **params)
            for rule, t in zip(rules, tangents, strict=False)
            if rule is not None and type(t) is not Zero
        ]
        return out, functools.reduce(add_tangents, pushed, Zero.from_primal_value(out))

    primitive_jvps[primitive] = jvp


def defjvp(primitive: Any, *rules: Rule | None) -> None:
    """Define derivatives by operand: `(tangent, *primals, **params) -> tangent`, or None for zero."""

    def without_result(rule: Rule) -> Rule:
        return lambda tangent, out, *primals, **params: rule(tangent, *primals, **params)

    defjvp2(primitive, *(None if rule is None else without_result(rule) for rule in rules))


def get_primitive_transpose(primitive: Any) -> Rule:
    """Return the transpose rule of a primitive.

    Raises:
        NotImplementedError: it has none.
    """
    try:
        return primitive_transposes[primitive]
    except KeyError:
        raise NotImplementedError(f"transpose rule of {primitive}") from None


# -- vmap ----------------------------------------------------------------------------------------------------------


class AxisData:
    """The mapped axis that a batching rule runs for."""

    def __init__(self, size: int) -> None:
        names = axis_of_rule().name
        self.name = names[0] if isinstance(names, tuple) and len(names) == 1 else names
        self.size = size
        self.spmd_name = axis_of_rule().spmd or None
        self.explicit_mesh_axis = None


def _batched(primitive: Any, results: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return results and their batch axes in the form that corejax expects."""
    out, dims = results
    if not primitive.multiple_results:
        return out, dims
    out = list(out)
    return out, list(dims) if isinstance(dims, list | tuple) else [dims] * len(out)


def _vmap(primitive: Any, rule: Rule) -> Rule:
    def vmap(size: int, vals: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        return _batched(primitive, rule(tuple(vals), tuple(dims), **params))

    return vmap


def _axis_vmap(primitive: Any, rule: Rule) -> Rule:
    def vmap(size: int, vals: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        axis = AxisData(size)
        return _batched(primitive, rule(size, axis.name, None, tuple(vals), tuple(dims), **params))

    return vmap


def _fancy_vmap(primitive: Any, rule: Rule) -> Rule:
    def vmap(size: int, vals: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        return _batched(primitive, rule(AxisData(size), tuple(vals), tuple(dims), **params))

    return vmap


def _size_of(vals: Sequence[Any], dims: Sequence[Any]) -> int:
    size: int = next(get_aval(x).shape[d] for x, d in zip(vals, dims, strict=True) if d is not None)
    return size


def _vmap_of_jax(primitive: Any, rule: Rule) -> Rule:
    return lambda vals, dims, **params: rule(_size_of(vals, dims), list(vals), list(dims), **params)


def _axis_vmap_of_jax(primitive: Any, rule: Rule) -> Rule:
    return lambda size, name, main, vals, dims, **params: rule(size, list(vals), list(dims), **params)


def _fancy_vmap_of_jax(primitive: Any, rule: Rule) -> Rule:
    return lambda axis, vals, dims, **params: rule(axis.size, list(vals), list(dims), **params)


primitive_batchers = RuleTable(vmap_rules, _vmap, _vmap_of_jax)
axis_primitive_batchers = RuleTable(vmap_rules, _axis_vmap, _axis_vmap_of_jax)
fancy_primitive_batchers = RuleTable(vmap_rules, _fancy_vmap, _fancy_vmap_of_jax)
