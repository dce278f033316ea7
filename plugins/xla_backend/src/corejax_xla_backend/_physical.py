"""Programs of extended dtypes as programs of numbers, which is what backends compile.

An array of an extended dtype is held as numbers, an element's behind its own axes (`physical_aval`). An equation that
takes or gives such arrays becomes, by the first of these that there is:

    its primitive's physical rule            `random_unwrap`, which gives the numbers: nothing is left
    programs among its parameters            `scan`: the same equation, of physical programs
    its primitive's decomposition            `random_bits`: the equations of that
    its primitive's vmap rule                `slice`: itself, over the numbers of an element as a batch
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import (
    Array,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    Var,
    close_over_consts,
    decomposed,
    dtypes,
    flat_decomposition,
    inline_equations,
    memoised,
    move_batch_axis,
    stage_closed,
    vmap_rules,
)
from corejax.extend.messages import CorejaxError
from corejax.extend.transforms import batch_flat
from corejax.extend.types import numbers_of, physical_aval, physical_rules


class NoPhysicalRuleError(CorejaxError, NotImplementedError):
    """A primitive that nothing says about how it computes with arrays of an extended dtype."""


def physical_program(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program of numbers that a program is compiled as; itself where it has no extended dtypes.

    Binders and results are the same, of physical types; behind the constants there may be more of them.

    Raises:
        NoPhysicalRuleError: a primitive has neither of what is needed.
    """
    if not dtypes.has_extended():
        return closed
    # A program that stays as it is is not kept with itself: that would be a cycle, which holds its executables.
    (found,) = memoised(closed, ("physical",), lambda: (_physical(closed),))
    return closed if found is None else found


def _extended(aval: ShapedArray) -> bool:
    return aval.dtype.names is not None


def _physical(closed: ClosedJaxpr) -> ClosedJaxpr | None:
    """The rewritten program; None where nothing in it is of an extended dtype."""
    rewriting = _Rewriting()
    jaxpr = rewriting.program(closed.jaxpr)
    if jaxpr is closed.jaxpr:
        return None
    return ClosedJaxpr(jaxpr, [*map(_physical_value, closed.consts), *rewriting.consts])


def _physical_value(x: Any) -> Any:
    """Return a concrete array as the array of its numbers; others as they are."""
    if type(x) is Array and _extended(x.aval):
        return Array(numbers_of(x._fetch()), physical_aval(x.aval))
    return x


class _Rewriting:
    """One program's equations being rewritten, and the constants that came with them."""

    def __init__(self) -> None:
        self.env: dict[Any, Any] = {}
        self.constvars: list[Var] = []
        self.consts: list[Any] = []

    def read(self, atom: Any) -> Any:
        return self.env.get(atom, atom) if type(atom) is Var else atom

    def bind(self, var: Var) -> Var:
        """The variable of the physical type."""
        if not _extended(var.aval):
            return var
        new = self.env[var] = Var(physical_aval(var.aval))
        return new

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """The program rewritten; itself where nothing in it is of an extended dtype."""
        constvars, invars = [list(map(self.bind, binders)) for binders in (jaxpr.constvars, jaxpr.invars)]
        eqns: list[JaxprEqn] = []
        changed = bool(self.env)
        for eqn in jaxpr.eqns:
            new = self.equations(eqn)
            changed = changed or len(new) != 1 or new[0] is not eqn
            eqns += new
        if not changed:
            return jaxpr
        outvars = list(map(self.read, jaxpr.outvars))
        return Jaxpr([*constvars, *self.constvars], invars, eqns, outvars, jaxpr.debug_info)

    def equations(self, eqn: JaxprEqn) -> list[JaxprEqn]:
        """What becomes of an equation."""
        params = {name: _of_param(value) for name, value in eqn.params.items()}
        programs = any(value is not eqn.params[name] for name, value in params.items())
        extended = any(_extended(v.aval) for v in (*eqn.invars, *eqn.outvars))
        if not programs and not extended:
            aliased = [self.read(v) for v in eqn.invars]
            same = all(a is b for a, b in zip(aliased, eqn.invars, strict=True))
            return [eqn if same else eqn.replace(invars=aliased)]
        if eqn.primitive not in physical_rules and (programs or _has_programs(eqn.params)):
            invars = list(map(self.read, eqn.invars))
            return [eqn.replace(invars=invars, outvars=list(map(self.bind, eqn.outvars)), params=params)]
        small = _translated(eqn.primitive, [v.aval for v in eqn.invars], eqn.params)
        _check_results(eqn, small)
        consts = [Var(v.aval) for v in small.jaxpr.constvars]
        self.constvars += consts
        self.consts += small.consts
        opened = close_over_consts(small.jaxpr)
        eqns, outs = inline_equations(opened, [*consts, *map(self.read, eqn.invars)])
        self.env.update(zip(eqn.outvars, outs, strict=True))
        return [e.replace(source_info=eqn.source_info) for e in eqns]


def _of_param(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return physical_program(value)
    if isinstance(value, Jaxpr):
        rewriting = _Rewriting()
        found = rewriting.program(value)
        if rewriting.consts:
            raise NoPhysicalRuleError("an open program in a parameter, some of whose operations bring constants")
        return found
    if type(value) in (tuple, list):
        items = [_of_param(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    return value


def _has_programs(params: dict[str, Any]) -> bool:
    values = [v for value in params.values() for v in (value if type(value) in (tuple, list) else (value,))]
    return any(isinstance(value, ClosedJaxpr | Jaxpr) for value in values)


def _translated(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> ClosedJaxpr:
    """One application, as a program of numbers."""
    physical = list(map(physical_aval, avals))
    rule = physical_rules.get(primitive)
    if rule is not None:

        def flat(*numbers: Any) -> Any:
            out = rule(avals, *numbers, **params)
            return out if primitive.multiple_results else [out]

        return stage_closed(flat, physical)
    if flat_decomposition(primitive) is not None:
        return physical_program(decomposed(primitive, avals, params))
    if vmap_rules.get(primitive) is None:
        raise NoPhysicalRuleError(
            f"primitive {primitive.name!r} is applied to {', '.join(a.str_short() for a in avals)}, and has neither a "
            "physical rule, a decomposition nor a vmap rule to say what it does with the numbers"
        )
    return stage_closed(functools.partial(_over_elements, primitive, avals, params), physical)


def _check_results(eqn: JaxprEqn, small: ClosedJaxpr) -> None:
    for v, found in zip(eqn.outvars, small.out_avals, strict=True):
        if (found.shape, found.dtype) != (physical_aval(v.aval).shape, physical_aval(v.aval).dtype):
            raise NoPhysicalRuleError(
                f"primitive {eqn.primitive.name!r} gives {v.aval.str_short()}, and of the numbers of an element "
                f"{found.str_short()}: it needs a physical rule"
            )


def _over_elements(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], *numbers: Any
) -> list[Any]:
    """The primitive over the numbers of an element, one axis after the other from the last one on."""
    _, inner = dtypes.element_of(next(a.dtype for a in avals if _extended(a)))
    dims = [a.ndim if _extended(a) else None for a in avals]

    def apply(depth: int) -> Callable[..., list[Any]]:
        if depth == len(inner):
            return lambda *vals: _bound(primitive, vals, params)
        size = inner[len(inner) - 1 - depth]

        def batched(*vals: Any) -> list[Any]:
            where = [None if d is None else d + len(inner) - 1 - depth for d in dims]
            outs, dims_out = batch_flat(apply(depth + 1), size, vals, where)
            return [move_batch_axis(size, d, x.ndim - (d is not None), x) for x, d in zip(outs, dims_out, strict=True)]

        return batched

    return apply(0)(*numbers)


def _bound(primitive: Primitive, vals: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    out = primitive.bind(*vals, **params)
    return list(out) if primitive.multiple_results else [out]
