"""A pass that rewrites programs with extended dtypes to programs of numbers, which backends compile.

An array of an extended dtype is stored as numbers, with an element's axes behind the array's (`physical_aval`). An
equation that takes or returns such arrays is rewritten by the first of these that exists:

    its primitive's physical rule            `random_unwrap`, which returns the numbers: the equation disappears
    programs among its parameters            `scan`: the same equation, of physical programs
    its primitive's decomposition            `random_bits`: the equations of the decomposition
    its primitive's vmap rule                `slice`: itself, with the numbers of an element as a batch
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
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
    find_primitive,
    flat_decomposition,
    inline_equations,
    memoised,
    move_batch_axis,
    stage_closed,
    vmap_rules,
)
from corejax.extend.devices import CompileOptions
from corejax.extend.messages import CorejaxError
from corejax.extend.transforms import batch_flat
from corejax.extend.types import Packed, ValueType, numbers_of, physical_aval, physical_rules
from corejax_xla_backend._lowering.types import flat_avals


class NoPhysicalRuleError(CorejaxError, NotImplementedError):
    """Raised if no rule says how a primitive computes with arrays of an extended dtype."""


def physical_program(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program of numbers that a program is compiled as; the program itself if it has no extended dtypes.

    Arguments and results are the same, with physical types. Further constants may follow the program's own.

    Raises:
        NoPhysicalRuleError: a primitive has none of the rules that the rewriting needs.
    """
    if not dtypes.has_extended():
        return closed
    # The memo holds None for an unchanged program: a reference to itself would be a cycle that holds its executables.
    (physical,) = memoised(closed, ("physical",), lambda: (_physical(closed),))
    return closed if physical is None else physical


def flat_program(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program of arrays for a program that takes or returns values of value types.

    The arrays that store such a value take its place; the program itself if there are none.
    """
    atoms = (*closed.jaxpr.constvars, *closed.jaxpr.invars, *closed.jaxpr.outvars)
    if not any(isinstance(v.aval, ValueType) for v in atoms):
        return closed
    flat: ClosedJaxpr = memoised(closed, ("flat",), lambda: _flat(closed))
    return flat


def _flat(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns: list[JaxprEqn] = []

    def parts_of(v: Any) -> list[Any]:
        return list(map(Var, v.aval.parts())) if isinstance(v.aval, ValueType) else [v]

    def binders(variables: Sequence[Var]) -> list[Var]:
        flat: list[Var] = []
        for v in variables:
            parts = parts_of(v)
            if parts != [v]:
                eqns.append(JaxprEqn(_primitive("pack"), parts, [v], {"type": v.aval}))
            flat += parts
        return flat

    constvars, invars = binders(jaxpr.constvars), binders(jaxpr.invars)
    eqns += jaxpr.eqns
    outvars: list[Any] = []
    for v in jaxpr.outvars:
        parts = parts_of(v)
        if parts != [v]:
            eqns.append(JaxprEqn(_primitive("unpack"), [v], parts, {}))
        outvars += parts
    return ClosedJaxpr(Jaxpr(constvars, invars, eqns, outvars, jaxpr.debug_info), flat_values(closed.consts))


def _primitive(name: str) -> Primitive:
    primitive = find_primitive(name)
    assert primitive is not None  # a program with a value type has an equation with this primitive, or its plugin
    return primitive


def flat_values(values: Iterable[Any]) -> list[Any]:
    """Return values with the arrays that store a packed value in its place."""
    return [part for x in values for part in (x.parts if type(x) is Packed else (x,))]


def packed_values(avals: Iterable[ShapedArray], arrays: Iterable[Any]) -> list[Any]:
    """Return values of these types from the arrays that store them, the inverse of `flat_values`."""
    each = iter(arrays)
    return [
        Packed(aval, tuple(next(each) for _ in aval.parts())) if isinstance(aval, ValueType) else next(each)
        for aval in avals
    ]


def flat_options(options: CompileOptions, closed: ClosedJaxpr) -> CompileOptions:
    """Return the options of a program for its `flat_program`: what holds for a value holds for each of its parts."""

    def repeated(choices: Sequence[Any], avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
        return tuple(x for x, aval in zip(choices, avals, strict=False) for _ in flat_avals([aval]))

    binders = [v.aval for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    known = {i: (aval, data) for i, aval, data in options.known}
    numbers = repeated(range(len(binders)), binders)
    return options._replace(
        donated=repeated(options.donated, closed.in_avals),
        in_shardings=repeated(options.in_shardings, binders),
        out_shardings=repeated(options.out_shardings, closed.out_avals),
        known=tuple((k, *known[i]) for k, i in enumerate(numbers) if i in known),
    )


def _extended(aval: ShapedArray) -> bool:
    return aval.dtype.names is not None


def _physical(closed: ClosedJaxpr) -> ClosedJaxpr | None:
    """Return the rewritten program; None if nothing in it has an extended dtype."""
    rewriting = _Rewriting()
    jaxpr = rewriting.program(closed.jaxpr)
    if jaxpr is closed.jaxpr:
        return None
    return ClosedJaxpr(jaxpr, [*map(_physical_value, closed.consts), *rewriting.consts])


def _physical_value(x: Any) -> Any:
    """Return the numbers of an array of an extended dtype, and other values unchanged."""
    if type(x) is Array and _extended(x.aval):
        return Array(numbers_of(x._fetch()), physical_aval(x.aval))
    return x


class _Rewriting:
    """The state of rewriting one program: the new variables, and the constants that rewritten equations add."""

    def __init__(self) -> None:
        self.env: dict[Any, Any] = {}
        self.constvars: list[Var] = []
        self.consts: list[Any] = []

    def read(self, atom: Any) -> Any:
        """Return the physical variable of a variable, and literals unchanged."""
        return self.env.get(atom, atom) if type(atom) is Var else atom

    def bind(self, var: Var) -> Var:
        """Return the variable of the physical type for a binder."""
        if not _extended(var.aval):
            return var
        new = self.env[var] = Var(physical_aval(var.aval))
        return new

    def program(self, jaxpr: Jaxpr) -> Jaxpr:
        """Return the rewritten program; the program itself if nothing in it has an extended dtype."""
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
        """Return the equations that replace an equation."""
        params = {name: _physical_param(value) for name, value in eqn.params.items()}
        programs = any(value is not eqn.params[name] for name, value in params.items())
        extended = any(_extended(v.aval) for v in (*eqn.invars, *eqn.outvars))
        if not programs and not extended:
            aliased = [self.read(v) for v in eqn.invars]
            same = all(a is b for a, b in zip(aliased, eqn.invars, strict=True))
            return [eqn if same else eqn.replace(invars=aliased)]
        if eqn.primitive not in physical_rules and (programs or _has_programs(eqn.params)):
            invars = list(map(self.read, eqn.invars))
            return [eqn.replace(invars=invars, outvars=list(map(self.bind, eqn.outvars)), params=params)]
        application = _physical_application(eqn.primitive, [v.aval for v in eqn.invars], eqn.params)
        _check_results(eqn, application)
        consts = [Var(v.aval) for v in application.jaxpr.constvars]
        self.constvars += consts
        self.consts += application.consts
        opened = close_over_consts(application.jaxpr)
        eqns, outs = inline_equations(opened, [*consts, *map(self.read, eqn.invars)])
        self.env.update(zip(eqn.outvars, outs, strict=True))
        return [e.replace(source_info=eqn.source_info) for e in eqns]


def _physical_param(value: Any) -> Any:
    """Return a parameter with its programs rewritten; the same object if nothing changes."""
    if isinstance(value, ClosedJaxpr):
        return physical_program(value)
    if isinstance(value, Jaxpr):
        rewriting = _Rewriting()
        jaxpr = rewriting.program(value)
        if rewriting.consts:
            raise NoPhysicalRuleError("operations in an open program of a parameter need constants of their own")
        return jaxpr
    if type(value) in (tuple, list):
        items = [_physical_param(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    return value


def _has_programs(params: dict[str, Any]) -> bool:
    """Return whether there are programs among an equation's parameters."""
    values = [v for value in params.values() for v in (value if type(value) in (tuple, list) else (value,))]
    return any(isinstance(value, ClosedJaxpr | Jaxpr) for value in values)


def _physical_application(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> ClosedJaxpr:
    """Return one application of a primitive, as a program of numbers."""
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
            f"primitive {primitive.name!r} is applied to {', '.join(a.str_short() for a in avals)}, but has no "
            "physical rule, decomposition or vmap rule that says how to compute with the numbers"
        )
    return stage_closed(functools.partial(_over_elements, primitive, avals, params), physical)


def _check_results(eqn: JaxprEqn, application: ClosedJaxpr) -> None:
    """Raise NoPhysicalRuleError if a rewritten equation does not have the physical types of its results."""
    for v, aval in zip(eqn.outvars, application.out_avals, strict=True):
        if (aval.shape, aval.dtype) != (physical_aval(v.aval).shape, physical_aval(v.aval).dtype):
            raise NoPhysicalRuleError(
                f"primitive {eqn.primitive.name!r} returns {v.aval.str_short()}, but {aval.str_short()} if it is "
                "applied to the numbers: it needs a physical rule"
            )


def _over_elements(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], *numbers: Any
) -> list[Any]:
    """Apply a primitive to the numbers of each element: vmap over the element's axes, the last axis first."""
    _, inner = dtypes.element_of(next(a.dtype for a in avals if _extended(a)))
    dims = [a.ndim if _extended(a) else None for a in avals]

    def apply(depth: int) -> Callable[..., list[Any]]:
        if depth == len(inner):
            return lambda *vals: _bind(primitive, vals, params)
        size = inner[len(inner) - 1 - depth]

        def batched(*vals: Any) -> list[Any]:
            where = [None if d is None else d + len(inner) - 1 - depth for d in dims]
            outs, dims_out = batch_flat(apply(depth + 1), size, vals, where)
            return [move_batch_axis(size, d, x.ndim - (d is not None), x) for x, d in zip(outs, dims_out, strict=True)]

        return batched

    return apply(0)(*numbers)


def _bind(primitive: Primitive, vals: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Bind a primitive, and return a list of results."""
    out = primitive.bind(*vals, **params)
    return list(out) if primitive.multiple_results else [out]
