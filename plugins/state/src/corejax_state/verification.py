"""The check of primitives on references by `corejax verify`. Only corejax-testing imports this module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import jit, jvp, new_ref, vmap
from corejax.extend import dtypes
from corejax_state.discharge import RefPrimitive
from corejax_testing import Call, Check, CheckFailure, NotApplicable

_HINT = "the rule has to compute the new values from its operands alone"


def check_discharge(call: Call, rng: np.random.Generator) -> None:
    """Check that a primitive writes to references what its discharge rule returns: compiled, mapped, differentiated."""
    primitive = RefPrimitive.of(call.primitive)
    if primitive is None:
        raise NotApplicable("it takes no references")
    call.require_alone()

    def bind(*operands: Any) -> Any:
        out = primitive.bind(*operands, **call.params)
        return out if primitive.multiple_results else [] if out is None else [out]

    def twice(*operands: Any) -> Any:
        return [*bind(*operands), *bind(*operands)]

    def within(*values: Any) -> list[Any]:
        return _on_references(primitive, bind, values)

    count = len(primitive.writes)
    first = call(*call.values)
    second = call(*_after(primitive, call.values, first))
    expected = [*second[:count], *first[count:], *second[count:]]
    _same("applied twice", _on_references(primitive, twice, call.values), expected)
    _same("applied twice in jit", _on_references(primitive, jit(twice), call.values), expected)
    batch = [np.stack([x, x]) for x in call.values]
    _same("in vmap", _on_references(primitive, vmap(bind), batch), vmap(call)(*batch))
    moving = [dtypes.is_inexact(x.dtype) for x in call.values]
    if any(moving):
        _same("in jvp", _tangents(within, call.values, moving), _tangents(call, call.values, moving))


def _on_references(primitive: RefPrimitive, fun: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
    """Return the values of the references that a function writes after its call, and its results."""
    operands = dict(zip(primitive.operands, values, strict=True))
    for name in (*primitive.writes, *primitive.reads):
        operands[name] = new_ref(operands[name])
    outs = fun(*operands.values())
    return [*[operands[name][...] for name in primitive.writes], *outs]


def _after(primitive: RefPrimitive, values: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    """Return the operands with the values that the primitive has written."""
    written = dict(zip(primitive.writes, outs[: len(primitive.writes)], strict=True))
    return [written.get(name, x) for name, x in zip(primitive.operands, values, strict=True)]


def _tangents(fun: Callable[..., Any], values: Sequence[Any], moving: Sequence[bool]) -> list[Any]:
    """Return the tangents of a function's inexact results, for tangents of ones."""

    def of_moving(*xs: Any) -> Any:
        remaining = iter(xs)
        outs = fun(*[next(remaining) if moves else x for x, moves in zip(values, moving, strict=True)])
        return [x for x in outs if dtypes.is_inexact(x.dtype)]

    primals = [x for x, moves in zip(values, moving, strict=True) if moves]
    return list(jvp(of_moving, primals, [np.ones_like(x) for x in primals])[1])


def _same(how: str, got: Sequence[Any], wanted: Sequence[Any]) -> None:
    for i, (x, y) in enumerate(zip(map(np.asarray, got), map(np.asarray, wanted), strict=True)):
        if dtypes.is_inexact(y.dtype):
            allowed = float(dtypes.finfo(y.dtype).eps) ** 0.5
            same = np.allclose(x.astype(complex), y.astype(complex), rtol=allowed, atol=allowed, equal_nan=True)
        else:
            same = np.array_equal(x, y)
        if not same:
            raise CheckFailure(f"{how}, value {i} is {x!r}, and {y!r} by the rule", "discharge", _HINT)


DISCHARGE = Check("discharge", check_discharge, rule="discharge", limit=4)
