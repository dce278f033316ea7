"""Check operands and batches without elements."""

from __future__ import annotations

import numpy as np

import corejax
from corejax.extend import ShapedArray, jvp_rules, vmap_rules
from corejax_testing.arrays import Array
from corejax_testing.calls import Call, host
from corejax_testing.checks.compiled import translates
from corejax_testing.checks.derivatives import pushed
from corejax_testing.checks.registry import at_fault, check
from corejax_testing.operands import admits
from corejax_testing.outcomes import CheckFailure, NotApplicable


@check("zero_size", None, limit=4)
def check_zero_size(call: Call, rng: np.random.Generator) -> None:
    """Check that empty operands (if elementwise) and empty batches give empty results, also in jvp, vjp and jit."""
    tried = False
    if "elementwise" in call.primitive.tags and call.values:
        tried = _check_empty_operands(call)
    if call.values and vmap_rules.find(call.primitive) is not None:
        _check_empty_batch(call)
        tried = True
    if not tried:
        raise NotApplicable("no operands")


def _check_empty_operands(call: Call) -> bool:
    """Check empty operands; return False if the example excludes them."""
    shape = (0, 2)
    scalars = not any(x.ndim for x in call.values)
    empty = call.at([np.zeros(shape, x.dtype) if x.ndim or scalars else x for x in call.values])
    if not admits(call.example, empty.values):
        return False
    wanted = [ShapedArray(shape, a.dtype) for a in call.avals_out]
    with at_fault("impl"):
        _require(host(empty(*empty.values)), wanted, f"for operands of shape {shape}, a result", "impl")
    if translates(call):
        with at_fault("xla_translation"):
            compiled = host(corejax.jit(lambda *a: empty(*a))(*empty.values))
        _require(compiled, wanted, f"compiled, for operands of shape {shape}, a result", "xla_translation")
    if jvp_rules.find(call.primitive) is None:
        return True
    try:
        fun, xs, outs = empty.moving()
    except NotApplicable:
        return True
    with at_fault("jvp"):
        tangents = pushed(fun, xs, [np.zeros_like(x) for x in xs])[1]
    _require(tangents, [wanted[i] for i in outs], f"for operands of shape {shape}, a tangent", "jvp")
    with at_fault("transpose"):
        cts = [np.zeros(wanted[i].shape, wanted[i].dtype) for i in outs]
        back = host(corejax.vjp(lambda *a: fun(*a), *xs)[1](cts))
    _require(
        back, [ShapedArray(x.shape, x.dtype) for x in xs], f"for operands of shape {shape}, a cotangent", "transpose"
    )
    return True


def _check_empty_batch(call: Call) -> None:
    values = [np.zeros((0, *x.shape), x.dtype) for x in call.values]
    wanted = [ShapedArray((0, *a.shape), a.dtype) for a in call.avals_out]
    with at_fault("vmap"):
        outs = host(corejax.vmap(call.__call__)(*values))
    _require(outs, wanted, "for an empty batch, a result", "vmap")


def _require(got: list[Array], wanted: list[ShapedArray], what: str, rule: str) -> None:
    for x, aval in zip(got, wanted, strict=True):
        if (x.shape, x.dtype) != (aval.shape, aval.dtype):
            found = ShapedArray(x.shape, x.dtype)
            raise CheckFailure(f"{what} is of type {found.str_short()}, but {aval.str_short()} is right", rule)
