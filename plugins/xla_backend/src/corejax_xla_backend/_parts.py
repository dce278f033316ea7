"""Programs and values of the arrays that store values.

The type of a value says how the value is stored (`ShapedArray.parts`): an array of numbers is its own single part, an
array of an extended dtype is stored as numbers, with an element's axes behind the array's, and a value type names
several arrays. Backends take and return parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, ShapedArray, Var, find_primitive, memoised
from corejax.extend.devices import CompileOptions
from corejax.extend.types import Packed, ValueType, device_buffer, from_numbers, numbers_of


def is_stored(aval: ShapedArray) -> bool:
    """Return whether values of a type are stored in other arrays: the type is not its own single part."""
    return aval.dtype.names is not None or isinstance(aval, ValueType)


def flat_avals(avals: Iterable[ShapedArray]) -> list[ShapedArray]:
    """Return the types of the arrays that store values of these types."""
    return [part for aval in avals for part in aval.parts()]


def stored_arrays(values: Iterable[Any]) -> list[Any]:
    """Return the arrays that store values; an array of an extended dtype stays on its device."""
    return [part for x in values for part in _parts_of(x)]


def _parts_of(x: Any) -> tuple[Any, ...]:
    if type(x) is Packed:
        return x.parts
    if isinstance(x, np.ndarray):
        return (x,) if x.dtype.names is None else (numbers_of(x),)
    if type(x) is not Array or x.dtype.names is None:
        return (x,)
    buffer = device_buffer(x)
    return (Array(numbers_of(x._fetch()) if buffer is None else buffer, *x.aval.parts()),)


def values_stored_in(avals: Iterable[ShapedArray], arrays: Iterable[Any]) -> list[Any]:
    """Return values of these types from the arrays that store them, the inverse of `stored_arrays`."""
    each = iter(arrays)
    return [_packed(aval, [next(each) for _ in aval.parts()]) if is_stored(aval) else next(each) for aval in avals]


def _packed(aval: ShapedArray, parts: Sequence[Any]) -> Any:
    if isinstance(aval, ValueType):
        return Packed(aval, tuple(parts))
    [part] = parts
    if isinstance(part, np.ndarray):
        return from_numbers(part, aval.dtype)
    buffer = device_buffer(part)
    return Array(from_numbers(part._fetch(), aval.dtype) if buffer is None else buffer, aval)


def flat_program(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program of parts for a program that takes or returns values that are stored in other arrays.

    The parts take the places of values; the program itself if there are none. Inner programs stay as they are.
    """
    atoms = (*closed.jaxpr.constvars, *closed.jaxpr.invars, *closed.jaxpr.outvars)
    if not any(is_stored(v.aval) for v in atoms):
        return closed
    flat: ClosedJaxpr = memoised(closed, ("flat",), lambda: _flat(closed))
    return flat


def _flat(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns: list[JaxprEqn] = []

    def parts_of(v: Any) -> list[Any]:
        return list(map(Var, v.aval.parts())) if is_stored(v.aval) else [v]

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
    return ClosedJaxpr(Jaxpr(constvars, invars, eqns, outvars, jaxpr.debug_info), stored_arrays(closed.consts))


def _primitive(name: str) -> Primitive:
    primitive = find_primitive(name)
    assert primitive is not None  # plugins with types of values require the distribution of `pack` and `unpack`
    return primitive


def flat_options(options: CompileOptions, closed: ClosedJaxpr) -> CompileOptions:
    """Return the options of a program for its `flat_program`: what holds for a value holds for each of its parts."""

    def repeated(choices: Sequence[Any], avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
        return tuple(x for x, aval in zip(choices, avals, strict=False) for _ in aval.parts())

    binders = [v.aval for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    known = {i: (aval, data) for i, aval, data in options.known}
    numbers = repeated(range(len(binders)), binders)
    return options._replace(
        donated=repeated(options.donated, closed.in_avals),
        in_shardings=repeated(options.in_shardings, binders),
        out_shardings=repeated(options.out_shardings, closed.out_avals),
        known=tuple((k, *known[i]) for k, i in enumerate(numbers) if i in known),
    )
